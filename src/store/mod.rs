//! The metadata store: versioned nodes under paths, changed in transactions. It knows nothing of
//! what stands in them.

mod embedded;
pub(crate) mod paths;

pub(crate) use embedded::EmbeddedStore;

/// Counts the store's transactions; every change has a larger one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Revision(pub(crate) u64);

/// Counts the changes of one node, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(pub(crate) u64);

/// A node's content and version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) data: Vec<u8>,
    pub(crate) version: Version,
}

/// One part of a transaction; all of them happen or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// The node must not be there.
    Create { path: String, data: Vec<u8> },
    /// The node must be there, with this version if one is given.
    Set { path: String, data: Vec<u8>, version: Option<Version> },
    /// Likewise.
    Delete { path: String, version: Option<Version> },
}

/// Why a transaction did not happen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// The node that was to be made is there.
    #[error("{0} exists")]
    Exists(String),
    /// The node is not there.
    #[error("{0} is not there")]
    Missing(String),
    /// The node was changed meanwhile.
    #[error("{0} has another version")]
    Version(String),
    /// The store cannot be read or written.
    #[error("metadata store: {0}")]
    Failed(String),
}

/// What the cluster needs to find its logs. The embedded store and ZooKeeper's are the two kinds.
pub(crate) trait MetadataStore: Send + Sync + std::fmt::Debug {
    /// A node, if it is there.
    fn get(&self, path: &str) -> Result<Option<Node>, StoreError>;
    /// All nodes below `prefix`, with their whole paths, in order.
    fn subtree(&self, prefix: &str) -> Result<Vec<(String, Node)>, StoreError>;
    /// Does all of `ops` or nothing; durable when it returns.
    fn transact(&self, ops: &[Op]) -> Result<Revision, StoreError>;
}
