//! The codecs and the guard against bytes that Kafka's own classes made, and against bytes nobody
//! would.

mod golden;
mod guard;
