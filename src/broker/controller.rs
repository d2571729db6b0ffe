//! Changes of the cluster's metadata: planned by the machine, written to the store, then taken
//! over by this broker. One at a time.

use super::metadata::{Metadata, operations};
use super::partitions::Partitions;
use super::removal::Removal;
use crate::config::TopicConfig;
use crate::machine::controller::{
    Change, NewTopic, PartitionState, Picture, Refusal, Topic, plan_partitions, plan_topic,
};
use crate::protocol::ErrorCode;
use crate::store::{MetadataStore, Op, StoreError, paths};
use crate::types::{BrokerId, ProducerId, TopicId};
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Producer ids are taken from the store in blocks of this many.
const PRODUCER_ID_BLOCK: i64 = 1_000;

/// The only writer of the cluster's metadata.
#[derive(Debug)]
pub(crate) struct Controller {
    store: Arc<dyn MetadataStore>,
    metadata: Arc<Metadata>,
    partitions: Arc<Partitions>,
    removal: Arc<Removal>,
    defaults: (i32, i16),
    /// Lets one change be planned and made at a time.
    changing: Mutex<()>,
    /// Ids that are taken from the store and not handed out yet.
    producer_ids: Mutex<Range<i64>>,
}

impl Controller {
    /// `defaults` are partitions and replicas of topics that do not say.
    pub(crate) fn new(
        store: Arc<dyn MetadataStore>,
        metadata: Arc<Metadata>,
        partitions: Arc<Partitions>,
        (removal, defaults): (Arc<Removal>, (i32, i16)),
    ) -> Self {
        Self {
            store,
            metadata,
            partitions,
            removal,
            defaults,
            changing: Mutex::new(()),
            producer_ids: Mutex::new(0..0),
        }
    }

    /// Makes a topic, whose settings `config` are, and opens its partitions. With `dry` it is
    /// only checked. Gives the topic as it is or would be.
    pub(crate) async fn create_topic(
        &self,
        new: NewTopic,
        config: TopicConfig,
        dry: bool,
    ) -> Result<Arc<Topic>, Refusal> {
        let _changing = self.changing.lock().await;
        let topic = Arc::new(plan_topic(&self.metadata.look(), new, self.defaults)?);
        if dry {
            return Ok(topic);
        }
        self.check_room(topic.partitions.len())?;
        self.commit(vec![Change::CreateTopic(topic.clone())]).await?;
        if let Err(refusal) = self.open(topic.clone(), config).await {
            self.take_away(&topic, topic.id).await?;
            return Err(refusal);
        }
        tracing::info!(
            topic = %topic.name,
            id = %crate::types::topic_id_text(topic.id),
            partitions = topic.partitions.len(),
            "topic created"
        );
        Ok(topic)
    }

    /// Gives a topic more partitions, up to `count`.
    pub(crate) async fn create_partitions(
        &self,
        name: &str,
        count: i32,
        assignment: Option<Vec<Vec<BrokerId>>>,
        (config, dry): (TopicConfig, bool),
    ) -> Result<(), Refusal> {
        let _changing = self.changing.lock().await;
        let picture = self.metadata.picture();
        let topic = known(&picture, name)?;
        let added = plan_partitions(&picture, &topic, count, assignment.as_deref())?;
        if dry {
            return Ok(());
        }
        self.check_room(added.len())?;
        let change = Change::AddPartitions { topic: topic.clone(), added };
        let picture = self.commit(vec![change]).await?;
        // They are there from now on. Those that cannot be opened yet are offline until they can.
        let _opened = self.open(known(&picture, name)?, config).await;
        Ok(())
    }

    /// Takes a topic away, with its data.
    pub(crate) async fn delete_topic(&self, id: TopicId, unique: TopicId) -> Result<(), Refusal> {
        let _changing = self.changing.lock().await;
        let picture = self.metadata.picture();
        let topic = picture.by_id.get(&id).cloned().ok_or_else(|| {
            Refusal::new(ErrorCode::UnknownTopicId, "This server does not host this topic ID.")
        })?;
        self.take_away(&topic, unique).await?;
        tracing::info!(topic = %topic.name, "topic deleted");
        Ok(())
    }

    async fn take_away(&self, topic: &Arc<Topic>, unique: TopicId) -> Result<(), Refusal> {
        self.commit(vec![Change::DeleteTopic(topic.clone())]).await?;
        let (partitions, name) = (self.partitions.clone(), topic.name.clone());
        let closing = tokio::task::spawn_blocking(move || partitions.close_topic(&name, unique));
        let closed = closing.await.unwrap_or_default();
        self.removal.directories(closed.renamed);
        if !closed.all {
            // The next start finds the mark of the deletion, and what is left of the topic.
            return Ok(());
        }
        let path = paths::deleted(topic.id);
        self.write(vec![Op::Delete { path, version: None }]).await
    }

    /// Every open partition holds a descriptor, and appends must not run out of them.
    fn check_room(&self, more: usize) -> Result<(), Refusal> {
        let room = self.partitions.room();
        if more <= room {
            return Ok(());
        }
        let message = format!(
            "{more} more partitions asked for; this broker may open {room} more files for them \
             (raise its limit of open files)"
        );
        Err(Refusal::new(ErrorCode::InvalidPartitions, message))
    }

    /// Makes the one change that `plan` finds right when nobody else changes anything.
    pub(crate) async fn alter(
        &self,
        plan: impl FnOnce(&Picture) -> Result<Change, Refusal>,
    ) -> Result<Arc<Picture>, Refusal> {
        let _changing = self.changing.lock().await;
        let change = plan(&self.metadata.picture())?;
        if let Change::SetTopicConfig { name, .. } = &change {
            known(&self.metadata.look(), name)?;
        }
        self.commit(vec![change]).await
    }

    /// Gives every partition that this broker leads a new leader epoch: after an unclean stop the
    /// log may end earlier than its readers remember (KIP-320).
    pub(crate) async fn raise_epochs(&self, node: BrokerId) -> Result<(), Refusal> {
        let _changing = self.changing.lock().await;
        let raise = |state: &PartitionState| {
            let mut state = state.clone();
            if state.leader == node {
                state.leader_epoch.0 += 1;
                state.partition_epoch += 1;
            }
            state
        };
        let picture = self.metadata.picture();
        let changes: Vec<_> = picture
            .topics
            .values()
            .map(|topic| Change::SetPartitions {
                topic: topic.id,
                partitions: topic.partitions.iter().map(raise).collect(),
            })
            .collect();
        if !changes.is_empty() {
            self.commit(changes).await?;
        }
        Ok(())
    }

    /// An id that no producer of this cluster had before (KIP-98). A block whose fate is unknown
    /// is not used.
    pub(crate) async fn next_producer_id(&self) -> Result<ProducerId, Refusal> {
        let mut ids = self.producer_ids.lock().await;
        if ids.is_empty() {
            *ids = self.take_producer_ids().await?;
        }
        ids.next()
            .map(ProducerId)
            .ok_or_else(|| Refusal::new(ErrorCode::UnknownServerError, "no producer ids are left"))
    }

    async fn take_producer_ids(&self) -> Result<Range<i64>, Refusal> {
        let store = self.store.clone();
        let path = paths::PRODUCER_IDS;
        let found = blocking(move || store.get(path)).await?;
        let first: i64 = match &found {
            None => 0,
            Some(node) => {
                std::str::from_utf8(&node.data).ok().and_then(|text| text.parse().ok()).ok_or_else(
                    || Refusal::new(ErrorCode::UnknownServerError, "the producer ids are damaged"),
                )?
            }
        };
        let next = first.saturating_add(PRODUCER_ID_BLOCK);
        let data = next.to_string().into_bytes();
        let path = path.to_owned();
        let op = match found {
            None => Op::Create { path, data },
            Some(node) => Op::Set { path, data, version: Some(node.version) },
        };
        self.write(vec![op]).await?;
        Ok(first..next)
    }

    async fn open(&self, topic: Arc<Topic>, config: TopicConfig) -> Result<(), Refusal> {
        let partitions = self.partitions.clone();
        let opening = tokio::task::spawn_blocking(move || partitions.open_topic(&topic, &config));
        match opening.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => {
                tracing::error!(%error, "partition not opened");
                Err(Refusal::new(ErrorCode::KafkaStorageError, error.to_string()))
            }
            Err(error) => Err(Refusal::new(ErrorCode::UnknownServerError, error.to_string())),
        }
    }

    /// Writes changes in one transaction and takes them over.
    async fn commit(&self, changes: Vec<Change>) -> Result<Arc<Picture>, Refusal> {
        let picture = self.metadata.picture();
        let ops = changes.iter().flat_map(|change| operations(&picture, change)).collect();
        self.write(ops).await?;
        Ok(self.metadata.apply(&changes))
    }

    async fn write(&self, ops: Vec<Op>) -> Result<(), Refusal> {
        let store = self.store.clone();
        blocking(move || transact(&*store, &ops)).await
    }
}

/// Makes a transaction. One that failed may have happened all the same, when the disk failed after
/// it had written: what then stands in the store decides.
fn transact(store: &dyn MetadataStore, ops: &[Op]) -> Result<(), StoreError> {
    let failed = match store.transact(ops) {
        Err(failed @ StoreError::Failed(_)) => failed,
        other => return other.map(|_| ()),
    };
    for op in ops {
        let happened = match op {
            Op::Create { path, data } | Op::Set { path, data, .. } => {
                store.get(path)?.is_some_and(|node| node.data == *data)
            }
            Op::Delete { path, .. } => store.get(path)?.is_none(),
        };
        if !happened {
            return Err(failed);
        }
    }
    tracing::warn!(error = %failed, "the metadata store was changed although it failed");
    Ok(())
}

/// The store may wait for a disk, so it is asked on a thread that may block.
async fn blocking<T: Send + 'static>(
    ask: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Refusal> {
    let failed = |error: String| {
        tracing::error!(%error, "metadata store failed");
        Refusal::new(ErrorCode::KafkaStorageError, error)
    };
    match tokio::task::spawn_blocking(ask).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(error) => Err(failed(error.to_string())),
    }
}

fn known(picture: &Picture, name: &str) -> Result<Arc<Topic>, Refusal> {
    picture.topics.get(name).cloned().ok_or_else(|| {
        let message = "This server does not host this topic-partition.";
        Refusal::new(ErrorCode::UnknownTopicOrPartition, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{EmbeddedStore, Node, Revision};

    /// Fails at every transaction, before or after it happened.
    #[derive(Debug)]
    struct Failing {
        store: EmbeddedStore,
        after: bool,
    }

    impl MetadataStore for Failing {
        fn get(&self, path: &str) -> Result<Option<Node>, StoreError> {
            self.store.get(path)
        }

        fn subtree(&self, prefix: &str) -> Result<Vec<(String, Node)>, StoreError> {
            self.store.subtree(prefix)
        }

        fn transact(&self, ops: &[Op]) -> Result<Revision, StoreError> {
            if self.after {
                self.store.transact(ops)?;
            }
            Err(StoreError::Failed("the disk".to_owned()))
        }
    }

    #[test]
    fn a_transaction_that_failed_and_happened_counts_as_happened() {
        let dir = tempfile::tempdir().expect("directory");
        let open = |name: &str, after| Failing {
            store: EmbeddedStore::open(&dir.path().join(name)).expect("open"),
            after,
        };
        let create = |path: &str| Op::Create { path: path.to_owned(), data: b"x".to_vec() };
        let delete = |path: &str| Op::Delete { path: path.to_owned(), version: None };
        let after = open("after", true);
        transact(&after, &[create("/a"), create("/b")]).expect("happened");
        transact(&after, &[delete("/a")]).expect("happened");
        // Somebody else's node of that name is no sign of success.
        let exists = transact(&after, &[create("/b")]);
        assert!(matches!(exists, Err(StoreError::Exists(_))));
        let before = open("before", false);
        assert!(matches!(transact(&before, &[create("/a")]), Err(StoreError::Failed(_))));
    }
}
