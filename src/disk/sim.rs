//! A disk that crashes (tests only).
