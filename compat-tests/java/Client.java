import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.common.utils.Utils;

/** The Java client against a broker. */
public final class Client {
    private static final Duration LIMIT = Duration.ofSeconds(25);
    private static Admin admin;

    public static void main(String[] arguments) throws Exception {
        Suite.client("java", AppInfoParser.getVersion());
        admin = Admin.create(Map.of("bootstrap.servers", Suite.BOOTSTRAP, "default.api.timeout.ms", 20000, "request.timeout.ms", 15000));
        producing();
        consuming();
        groups();
        topics();
        configs();
        cluster();
        Suite.finish();
    }

    // Producing

    private static void producing() {
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            Suite.check("compression", codec, () -> {
                String topic = topic("compression-" + codec, 1);
                send(topic, texts(0, 500), Map.of("compression.type", codec));
                Suite.same(texts(0, 500), values(read(topic, 0, 0, 500)));
            });
        }
        for (String acks : List.of("0", "1", "all")) {
            Suite.check("acks", acks, () -> {
                String topic = topic("acks-" + acks, 1);
                List<RecordMetadata> acked = send(topic, texts(0, 300), Map.of("acks", acks, "enable.idempotence", "false"));
                // Without an answer there is no offset to tell.
                Suite.same(acks.equals("0") ? -1L : 299L, acked.get(299).hasOffset() ? acked.get(299).offset() : -1L);
                Suite.same(texts(0, 300), values(read(topic, 0, 0, 300)));
            });
        }
        Suite.check("acks", "record at and over the limit", () -> {
            String topic = topic("large", 1);
            String big = random(1_000_000);
            send(topic, List.of(big), Map.of());
            Suite.same(List.of(big), values(read(topic, 0, 0, 1)));
            refused(RecordTooLargeException.class, () ->
                send(topic, List.of(random(2_000_000)), Map.of("max.request.size", "9000000", "buffer.memory", "90000000")));
            Suite.same(1L, end(topic, 0));
        });
        Suite.check("idempotence", "the default, in many batches", () -> {
            String topic = topic("idempotence", 1);
            List<RecordMetadata> acked = send(topic, texts(0, 2000), Map.of("batch.size", "400"));
            Suite.same(IntStream.range(0, 2000).mapToObj(i -> (long) i).toList(), acked.stream().map(RecordMetadata::offset).toList());
            Suite.same(texts(0, 2000), values(read(topic, 0, 0, 2000)));
        });
        Suite.check("idempotence", "Admin.describeProducers", () -> {
            TopicPartition at = new TopicPartition(Suite.RUN + "-idempotence", 0);
            List<ProducerState> seen = admin.describeProducers(List.of(at)).partitionResult(at).get().activeProducers();
            Suite.same(1, seen.size());
            Suite.same(1999, seen.get(0).lastSequence());
            Suite.require(seen.get(0).currentTransactionStartOffset().isEmpty(), seen);
        });
        Suite.check("keys", "null, empty, tombstone", () -> {
            String topic = topic("keys", 1);
            List<List<String>> sent = new ArrayList<>();
            try (Producer<String, String> producer = producer(Map.of())) {
                for (String key : Arrays.asList("k", "", null)) {
                    for (String value : Arrays.asList("v", "", null)) {
                        producer.send(new ProducerRecord<>(topic, key, value)).get();
                        sent.add(Arrays.asList(key, value));
                    }
                }
            }
            Suite.same(sent, read(topic, 0, 0, 9).stream().map(r -> Arrays.asList(r.key(), r.value())).toList());
        });
        Suite.check("keys", "partitioner", () -> {
            String topic = topic("partitioner", 5);
            try (Producer<String, String> producer = producer(Map.of())) {
                for (String key : List.of("alpha", "beta", "gamma", "delta", "epsilon")) {
                    int want = Utils.toPositive(Utils.murmur2(key.getBytes(StandardCharsets.UTF_8))) % 5;
                    Suite.same(want, producer.send(new ProducerRecord<>(topic, key, "v")).get().partition());
                }
                Suite.same(4, producer.send(new ProducerRecord<>(topic, 4, "alpha", "v")).get().partition());
            }
            try (Producer<String, String> producer = producer(Map.of("partitioner.class", RoundRobinPartitioner.class.getName()))) {
                Set<Integer> met = new HashSet<>();
                for (int i = 0; i < 20; i++) met.add(producer.send(new ProducerRecord<>(topic, "alpha", "v")).get().partition());
                Suite.require(met.size() > 2, met);
            }
        });
        Suite.check("headers", "repeated, empty, null, binary", () -> {
            String topic = topic("headers", 1);
            byte[] every = new byte[256];
            for (int i = 0; i < 256; i++) every[i] = (byte) i;
            List<Header> sent = List.of(new RecordHeader("a", "1".getBytes()), new RecordHeader("b", new byte[0]),
                new RecordHeader("a", "2".getBytes()), new RecordHeader("none", (byte[]) null), new RecordHeader("\u00fc", every));
            try (Producer<String, String> producer = producer(Map.of())) {
                producer.send(new ProducerRecord<>(topic, 0, "k", "v", sent)).get();
            }
            Suite.same(sent, Arrays.asList(read(topic, 0, 0, 1).get(0).headers().toArray()));
        });
    }

    // Consuming without a group

    private static void consuming() {
        Suite.check("offsets", "assign, seek, beginning, end, position", () -> {
            String topic = topic("offsets", 2);
            TopicPartition at = new TopicPartition(topic, 0);
            TopicPartition empty = new TopicPartition(topic, 1);
            send(topic, 0, texts(0, 100), Map.of());
            try (Consumer<String, String> consumer = consumer(Map.of())) {
                Suite.same(Map.of(at, 0L, empty, 0L), consumer.beginningOffsets(List.of(at, empty)));
                Suite.same(Map.of(at, 100L, empty, 0L), consumer.endOffsets(List.of(at, empty)));
                consumer.assign(List.of(at));
                consumer.seek(at, 60);
                Suite.same(texts(60, 40), values(take(consumer, 40)));
                Suite.same(100L, consumer.position(at));
                Suite.same(0L, consumer.currentLag(at).getAsLong());
                consumer.seekToBeginning(List.of(at));
                Suite.same(0L, consumer.position(at));
                consumer.seekToEnd(List.of(at));
                Suite.same(100L, consumer.position(at));
                send(topic, 0, List.of("last"), Map.of());
                Suite.same(List.of("last"), values(take(consumer, 1)));
                consumer.pause(List.of(at));
                send(topic, 0, List.of("paused"), Map.of());
                Suite.require(consumer.poll(Duration.ofMillis(300)).isEmpty(), "records while paused");
                consumer.resume(List.of(at));
                Suite.same(List.of("paused"), values(take(consumer, 1)));
            }
        });
        Suite.check("offsets", "out of range", () -> {
            String topic = topic("range", 1);
            send(topic, texts(0, 10), Map.of());
            Suite.same(texts(0, 10), values(read(topic, 0, 500, 10)));
            try (Consumer<String, String> consumer = consumer(Map.of("auto.offset.reset", "none"))) {
                TopicPartition at = new TopicPartition(topic, 0);
                consumer.assign(List.of(at));
                consumer.seek(at, 500);
                refused(org.apache.kafka.clients.consumer.OffsetOutOfRangeException.class, () -> take(consumer, 1));
            }
        });
        Suite.check("offsets", "a record larger than the consumer's limits", () -> {
            String topic = topic("narrow", 1);
            List<String> sent = List.of(random(500_000), random(500_000));
            send(topic, sent, Map.of());
            try (Consumer<String, String> consumer = consumer(Map.of("max.partition.fetch.bytes", "1000", "fetch.max.bytes", "1000"))) {
                consumer.assign(List.of(new TopicPartition(topic, 0)));
                Suite.same(sent, values(take(consumer, 2)));
            }
        });
        Suite.check("offsets", "read_committed sees all plain records", () -> {
            String topic = Suite.RUN + "-idempotence";
            try (Consumer<String, String> consumer = consumer(Map.of("isolation.level", "read_committed"))) {
                TopicPartition at = new TopicPartition(topic, 0);
                consumer.assign(List.of(at));
                Suite.same(2000, take(consumer, 2000).size());
                Suite.same(2000L, consumer.endOffsets(List.of(at)).get(at));
            }
        });
        Suite.check("timestamps", "create time, offsetsForTimes", () -> {
            String topic = topic("timestamps", 1);
            TopicPartition at = new TopicPartition(topic, 0);
            try (Producer<String, String> producer = producer(Map.of())) {
                for (long time : new long[] {2000, 4000, 6000, 8000}) producer.send(new ProducerRecord<>(topic, 0, time, "k", "v")).get();
            }
            for (ConsumerRecord<String, String> record : read(topic, 0, 0, 4)) {
                Suite.same(TimestampType.CREATE_TIME, record.timestampType());
                Suite.same(2000 * (record.offset() + 1), record.timestamp());
            }
            try (Consumer<String, String> consumer = consumer(Map.of())) {
                Function<Long, OffsetAndTimestamp> ask = time -> consumer.offsetsForTimes(Map.of(at, time)).get(at);
                Suite.same(0L, ask.apply(1L).offset());
                Suite.same(1L, ask.apply(2001L).offset());
                Suite.same(4000L, ask.apply(2001L).timestamp());
                Suite.same(3L, ask.apply(8000L).offset());
                Suite.require(ask.apply(8001L) == null, ask.apply(8001L));
            }
        });
        Suite.check("timestamps", "LogAppendTime", () -> {
            String topic = topic("logappend", 1, Map.of("message.timestamp.type", "LogAppendTime"));
            long acked;
            try (Producer<String, String> producer = producer(Map.of())) {
                acked = producer.send(new ProducerRecord<>(topic, 0, 1L, "k", "v")).get().timestamp();
            }
            Suite.require(Math.abs(acked - System.currentTimeMillis()) < 60_000, acked);
            ConsumerRecord<String, String> record = read(topic, 0, 0, 1).get(0);
            Suite.same(TimestampType.LOG_APPEND_TIME, record.timestampType());
            Suite.same(acked, record.timestamp());
        });
        Suite.check("offsets", "Admin.listOffsets", () -> {
            TopicPartition at = new TopicPartition(Suite.RUN + "-timestamps", 0);
            TopicPartition empty = new TopicPartition(topic("empty", 1), 0);
            Suite.same(0L, listed(at, OffsetSpec.earliest()).offset());
            Suite.same(4L, listed(at, OffsetSpec.latest()).offset());
            Suite.same(3L, listed(at, OffsetSpec.maxTimestamp()).offset());
            Suite.same(8000L, listed(at, OffsetSpec.maxTimestamp()).timestamp());
            Suite.same(2L, listed(at, OffsetSpec.forTimestamp(5000)).offset());
            Suite.same(-1L, listed(at, OffsetSpec.forTimestamp(9000)).offset());
            Suite.same(-1L, listed(empty, OffsetSpec.maxTimestamp()).offset());
        });
    }

    private static ListOffsetsResult.ListOffsetsResultInfo listed(TopicPartition at, OffsetSpec spec) throws Exception {
        return admin.listOffsets(Map.of(at, spec), new ListOffsetsOptions(IsolationLevel.READ_UNCOMMITTED).timeoutMs(5000))
            .partitionResult(at).get();
    }

    // Groups

    private static void groups() {
        for (Class<?> assignor : List.of(RangeAssignor.class, RoundRobinAssignor.class, StickyAssignor.class, CooperativeStickyAssignor.class)) {
            Suite.check("groups", "join, leave, commit (" + assignor.getSimpleName() + ")", () -> joinAndLeave(assignor));
        }
        Suite.check("groups", "crash", () -> {
            String topic = topic("crash", 4);
            try (Member first = new Member(topic, "crash", Map.of())) {
                balanced(4, first);
                Member second = new Member(topic, "crash", Map.of());
                balanced(2, first, second);
                second.crash();
                // Nothing is said: the session must run out.
                balanced(4, first);
            }
        });
        Suite.check("groups", "a member that stops polling", () -> {
            String topic = topic("slow", 4);
            try (Member first = new Member(topic, "slow", Map.of());
                 Member second = new Member(topic, "slow", Map.of("max.poll.interval.ms", "7000"))) {
                balanced(2, first, second);
                second.stopped = true;
                balanced(4, first);
                second.stopped = false;
                balanced(2, first, second);
            }
        });
        Suite.check("groups", "static membership", () -> {
            String topic = topic("static", 4);
            try (Member first = new Member(topic, "static", Map.of("group.instance.id", "one", "session.timeout.ms", "30000"))) {
                Member second = new Member(topic, "static", Map.of("group.instance.id", "two", "session.timeout.ms", "30000"));
                balanced(2, first, second);
                int before = first.assigned;
                Set<TopicPartition> had = second.owned();
                second.close();
                second = new Member(topic, "static", Map.of("group.instance.id", "two", "session.timeout.ms", "30000"));
                balanced(2, first, second);
                Suite.same(had, second.owned());
                Suite.same(before, first.assigned);
                // A second one under the same name fences the first.
                try (Member usurper = new Member(topic, "static", Map.of("group.instance.id", "two", "session.timeout.ms", "30000"))) {
                    balanced(2, usurper);
                    Member fenced = second;
                    Suite.until(LIMIT, () -> fenced.failure.get() instanceof FencedInstanceIdException);
                }
            }
            MemberToRemove one = new MemberToRemove("one");
            admin.removeMembersFromConsumerGroup(group("static"), new RemoveMembersFromConsumerGroupOptions(List.of(one)))
                .memberResult(one).get();
        });
        Suite.check("groups", "commitSync, commitAsync, committed", () -> {
            String topic = topic("commits", 2);
            TopicPartition at = new TopicPartition(topic, 0);
            TopicPartition other = new TopicPartition(topic, 1);
            send(topic, 0, texts(0, 20), Map.of());
            try (Consumer<String, String> consumer = consumer(Map.of("group.id", group("commits")))) {
                Map<TopicPartition, OffsetAndMetadata> none = consumer.committed(Set.of(at));
                Suite.require(none.get(at) == null, none);
                consumer.assign(List.of(at));
                Suite.same(10, take(consumer, 10, 10).size());
                consumer.commitSync(Map.of(at, new OffsetAndMetadata(10, Optional.of(0), "a note")));
                Suite.same(new OffsetAndMetadata(10, Optional.of(0), "a note"), consumer.committed(Set.of(at)).get(at));
                AtomicReference<Object> called = new AtomicReference<>();
                consumer.commitAsync(Map.of(at, new OffsetAndMetadata(15), other, new OffsetAndMetadata(3)),
                    (offsets, error) -> called.set(error == null ? offsets : error));
                Suite.until(LIMIT, () -> consumer.poll(Duration.ofMillis(20)) != null && called.get() != null);
                Suite.require(called.get() instanceof Map, called.get());
                Suite.same(15L, consumer.committed(Set.of(at)).get(at).offset());
                Suite.same(3L, consumer.committed(Set.of(other)).get(other).offset());
            }
            try (Consumer<String, String> next = consumer(Map.of("group.id", group("commits")))) {
                next.assign(List.of(at));
                Suite.same(texts(15, 5), values(take(next, 5)));
            }
        });
        Suite.check("groups", "commit for a topic that is not there", () -> {
            try (Consumer<String, String> consumer = consumer(Map.of("group.id", group("nowhere"), "default.api.timeout.ms", "3000"))) {
                TopicPartition gone = new TopicPartition(Suite.RUN + "-nowhere", 0);
                // The client asks again for as long as it may, since the topic may still come.
                refused(KafkaException.class, () -> consumer.commitSync(Map.of(gone, new OffsetAndMetadata(1))));
            }
        });
        Suite.check("groups", "pattern subscription finds new topics", () -> {
            String first = topic("pattern-a", 1);
            send(first, texts(0, 3), Map.of());
            try (Consumer<String, String> consumer = consumer(Map.of("group.id", group("pattern"), "metadata.max.age.ms", "500"))) {
                consumer.subscribe(java.util.regex.Pattern.compile(Suite.RUN + "-pattern-.*"));
                Suite.same(texts(0, 3), values(take(consumer, 3)));
                consumer.commitSync();
                String second = topic("pattern-b", 1);
                send(second, texts(3, 3), Map.of());
                Suite.same(texts(3, 3), values(take(consumer, 3)));
            }
        });
        Suite.check("groups", "Admin: list, describe, offsets, delete", Client::administerGroup);
        kip848();
    }

    private static void joinAndLeave(Class<?> assignor) throws Exception {
        String name = assignor.getSimpleName();
        String topic = topic("group-" + name, 4);
        Map<String, String> settings = Map.of("partition.assignment.strategy", assignor.getName());
        Member second;
        try (Member first = new Member(topic, name, settings)) {
            balanced(4, first);
            second = new Member(topic, name, settings);
            balanced(2, first, second);
            for (int partition = 0; partition < 4; partition++) send(topic, partition, texts(partition * 50, 50), Map.of());
            Suite.until(LIMIT, () -> first.read.size() + second.read.size() == 200);
            Suite.same(100, first.read.size());
            Set<String> all = new TreeSet<>(first.read);
            all.addAll(second.read);
            Suite.same(new TreeSet<>(texts(0, 200)), all);
        }
        try (second) {
            balanced(4, second);
            // The one that left had committed, so nothing comes twice.
            send(topic, 0, List.of("after"), Map.of());
            Suite.until(LIMIT, () -> second.read.contains("after"));
            Suite.same(101, second.read.size());
        }
    }

    private static void administerGroup() throws Exception {
        String topic = topic("administered", 2);
        TopicPartition at = new TopicPartition(topic, 0);
        String group = group("administered");
        send(topic, 0, texts(0, 10), Map.of());
        try (Member member = new Member(topic, "administered", Map.of("client.id", "the-member"))) {
            Suite.until(LIMIT, () -> member.read.size() == 10);
            ConsumerGroupDescription seen = admin.describeConsumerGroups(List.of(group)).describedGroups().get(group).get();
            Suite.same(GroupState.STABLE, seen.groupState());
            Suite.same(GroupType.CLASSIC, seen.type());
            Suite.same("range", seen.partitionAssignor());
            MemberDescription one = seen.members().iterator().next();
            Suite.same("the-member", one.clientId());
            Suite.same(Set.of(at, new TopicPartition(topic, 1)), one.assignment().topicPartitions());
            Suite.require(seen.coordinator() != null, seen);
            refused(GroupNotEmptyException.class, () -> admin.deleteConsumerGroups(List.of(group)).all().get());
            refused(GroupSubscribedToTopicException.class, () ->
                admin.deleteConsumerGroupOffsets(group, Set.of(at)).all().get());
            Set<String> stable = admin.listGroups(ListGroupsOptions.forConsumerGroups().inGroupStates(Set.of(GroupState.STABLE)))
                .all().get().stream().map(GroupListing::groupId).collect(Collectors.toSet());
            Suite.require(stable.contains(group), stable);
        }
        Suite.until(LIMIT, () -> admin.describeConsumerGroups(List.of(group)).describedGroups().get(group).get().groupState() == GroupState.EMPTY);
        Suite.same(10L, admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(at).offset());
        admin.alterConsumerGroupOffsets(group, Map.of(at, new OffsetAndMetadata(4))).all().get();
        Suite.same(4L, admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(at).offset());
        admin.deleteConsumerGroupOffsets(group, Set.of(at)).all().get();
        Suite.require(!admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().containsKey(at), "the offset is still there");
        admin.alterConsumerGroupOffsets(group, Map.of(at, new OffsetAndMetadata(4))).all().get();
        admin.deleteConsumerGroups(List.of(group)).all().get();
        Set<String> left = admin.listGroups().all().get().stream().map(GroupListing::groupId).collect(Collectors.toSet());
        Suite.require(!left.contains(group), left);
        refused(GroupIdNotFoundException.class, () -> admin.deleteConsumerGroups(List.of(group)).all().get());
    }

    /** Groups of KIP-848 are not offered: the client must say so, not hang. */
    private static void kip848() {
        boolean offered;
        try {
            offered = admin.describeFeatures().featureMetadata().get().finalizedFeatures().containsKey("group.version");
        } catch (Exception unknown) {
            offered = false;
        }
        if (offered) {
            Suite.skip("groups", "group.protocol=consumer is refused: this broker offers it");
            return;
        }
        Suite.check("groups", "group.protocol=consumer is refused clearly", () -> {
            String topic = topic("kip848", 1);
            Map<String, Object> settings = consumerSettings(Map.of("group.id", group("848"), "group.protocol", "consumer"));
            try (Consumer<String, String> consumer = new KafkaConsumer<>(settings)) {
                consumer.subscribe(List.of(topic));
                refused(UnsupportedVersionException.class, () -> take(consumer, 1));
            }
        });
    }

    /** A consumer on a thread of its own, as in a program. */
    private static final class Member implements AutoCloseable {
        final List<String> read = java.util.Collections.synchronizedList(new ArrayList<>());
        final AtomicReference<RuntimeException> failure = new AtomicReference<>();
        volatile boolean stopped;
        volatile int assigned;
        private volatile boolean crashed;
        private volatile boolean closing;
        private volatile Set<TopicPartition> owned = Set.of();
        private final Consumer<String, String> consumer;
        private final Thread thread;

        Member(String topic, String group, Map<String, String> more) {
            Map<String, Object> settings = new HashMap<>(Map.of("group.id", group(group), "session.timeout.ms", "6000",
                "heartbeat.interval.ms", "300"));
            settings.putAll(more);
            consumer = consumer(settings);
            thread = new Thread(() -> run(topic), "member");
            thread.setDaemon(true);
            thread.start();
        }

        private void run(String topic) {
            try {
                consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
                    @Override public void onPartitionsRevoked(Collection<TopicPartition> partitions) { }

                    @Override public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                        assigned++;
                    }
                });
                while (!closing && !crashed) {
                    if (stopped) {
                        Thread.sleep(50);
                        continue;
                    }
                    for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(50))) read.add(record.value());
                    owned = Set.copyOf(consumer.assignment());
                    commit();
                }
            } catch (RuntimeException wrong) {
                failure.set(wrong);
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
            if (!crashed) consumer.close(CloseOptions.timeout(Duration.ofSeconds(5)));
        }

        private void commit() {
            try {
                if (!owned.isEmpty()) consumer.commitSync();
            } catch (RebalanceInProgressException | CommitFailedException later) {
                // The next poll takes part in the rebalance.
            }
        }

        Set<TopicPartition> owned() {
            return owned;
        }

        /** Stops the thread and the heartbeats without a word to the broker. */
        void crash() throws Exception {
            crashed = true;
            thread.join(5000);
            // Closing without leaving is what a process that dies looks like to the broker.
            consumer.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP));
        }

        @Override public void close() throws InterruptedException {
            closing = true;
            thread.join(10_000);
        }
    }

    private static void balanced(int each, Member... members) throws Exception {
        Suite.until(LIMIT, () -> {
            Set<TopicPartition> all = new HashSet<>();
            for (Member member : members) {
                if (member.failure.get() != null) throw member.failure.get();
                if (member.owned().size() != each) return false;
                all.addAll(member.owned());
            }
            return all.size() == each * members.length;
        });
    }

    // Administration

    private static void topics() {
        Suite.check("topics", "create, describe, list", () -> {
            String name = Suite.RUN + "-created";
            CreateTopicsResult result = admin.createTopics(List.of(new NewTopic(name, 3, (short) 1).configs(Map.of("retention.ms", "86400000"))));
            result.all().get();
            Suite.same(3, result.numPartitions(name).get());
            Suite.same(1, result.replicationFactor(name).get());
            Suite.same("86400000", result.config(name).get().get("retention.ms").value());
            Suite.require(result.config(name).get().entries().size() >= 25, result.config(name).get());
            Suite.settle(() -> Suite.require(admin.listTopics().names().get().contains(name), "not listed"));
            TopicDescription seen = admin.describeTopics(List.of(name), new DescribeTopicsOptions().includeAuthorizedOperations(true))
                .allTopicNames().get().get(name);
            Suite.same(3, seen.partitions().size());
            Suite.same(result.topicId(name).get(), seen.topicId());
            Suite.require(seen.authorizedOperations().contains(AclOperation.WRITE), seen);
            TopicPartitionInfo one = seen.partitions().get(0);
            Suite.require(one.leader() != null && one.replicas().size() == 1 && one.isr().size() == 1, one);
            Suite.same(name, admin.describeTopics(TopicCollection.ofTopicIds(List.of(seen.topicId()))).allTopicIds().get().get(seen.topicId()).name());
        });
        Suite.check("topics", "create, refused", () -> {
            String name = topic("taken", 1);
            refused(TopicExistsException.class, () -> create(new NewTopic(name, 1, (short) 1)));
            refused(InvalidTopicException.class, () -> create(new NewTopic(name + " x", 1, (short) 1)));
            refused(InvalidReplicationFactorException.class, () -> create(new NewTopic(name + "-rf", 1, (short) 9)));
            refused(InvalidPartitionsException.class, () -> create(new NewTopic(name + "-np", 0, (short) 1)));
            refused(InvalidConfigurationException.class, () -> create(new NewTopic(name + "-cfg", 1, (short) 1).configs(Map.of("retention.ms", "x"))));
            refused(InvalidReplicaAssignmentException.class, () -> create(new NewTopic(name + "-ra", Map.of(0, List.of(99)))));
            refused(UnknownTopicOrPartitionException.class, () -> admin.describeTopics(List.of(name + "-none")).allTopicNames().get());
        });
        Suite.check("topics", "validate only", () -> {
            CreateTopicsOptions dry = new CreateTopicsOptions().validateOnly(true);
            String name = Suite.RUN + "-dry";
            CreateTopicsResult result = admin.createTopics(List.of(new NewTopic(name, Optional.of(3), Optional.empty())), dry);
            Suite.same(3, result.numPartitions(name).get());
            Suite.require(!admin.listTopics().names().get().contains(name), "it was created");
            refused(TopicExistsException.class, () -> admin.createTopics(List.of(new NewTopic(Suite.RUN + "-taken", 1, (short) 1)), dry).all().get());
        });
        Suite.check("topics", "createPartitions", () -> {
            String name = topic("grown", 1);
            admin.createPartitions(Map.of(name, NewPartitions.increaseTo(5)), new CreatePartitionsOptions().validateOnly(true)).all().get();
            Suite.same(1, partitions(name));
            admin.createPartitions(Map.of(name, NewPartitions.increaseTo(4))).all().get();
            Suite.settle(() -> Suite.same(4, partitions(name)));
            refused(InvalidPartitionsException.class, () -> admin.createPartitions(Map.of(name, NewPartitions.increaseTo(2))).all().get());
            refused(InvalidPartitionsException.class, () -> admin.createPartitions(Map.of(name, NewPartitions.increaseTo(4))).all().get());
            send(name, 3, List.of("v"), Map.of());
            Suite.same(List.of("v"), values(read(name, 3, 0, 1)));
        });
        Suite.check("topics", "deleteTopics, by name and by id", () -> {
            String name = topic("deleted", 1);
            send(name, texts(0, 5), Map.of());
            Uuid before = admin.describeTopics(List.of(name)).allTopicNames().get().get(name).topicId();
            admin.deleteTopics(List.of(name)).all().get();
            Suite.settle(() -> Suite.require(!admin.listTopics().names().get().contains(name), "still listed"));
            refused(UnknownTopicOrPartitionException.class, () -> admin.deleteTopics(List.of(name)).all().get());
            topic("deleted", 1);
            Suite.settle(() -> Suite.same(0L, end(name, 0)));
            Uuid after = admin.describeTopics(List.of(name)).allTopicNames().get().get(name).topicId();
            Suite.require(!before.equals(after), after);
            refused(UnknownTopicIdException.class, () -> admin.deleteTopics(TopicCollection.ofTopicIds(List.of(before))).all().get());
            admin.deleteTopics(TopicCollection.ofTopicIds(List.of(after))).all().get();
            Suite.settle(() -> Suite.require(!admin.listTopics().names().get().contains(name), "still listed"));
        });
        Suite.check("topics", "a producer and a consumer outlive delete and create", () -> {
            String name = topic("again", 1);
            TopicPartition at = new TopicPartition(name, 0);
            try (Producer<String, String> producer = producer(Map.of("metadata.max.age.ms", "500"));
                 Consumer<String, String> consumer = consumer(Map.of("metadata.max.age.ms", "500"))) {
                consumer.assign(List.of(at));
                for (String text : texts(0, 5)) producer.send(new ProducerRecord<>(name, text)).get();
                Suite.same(texts(0, 5), values(take(consumer, 5)));
                admin.deleteTopics(List.of(name)).all().get();
                Suite.settle(() -> Suite.require(!admin.listTopics().names().get().contains(name), "still listed"));
                topic("again", 1);
                producer.send(new ProducerRecord<>(name, "new")).get(20, TimeUnit.SECONDS);
                consumer.seekToBeginning(List.of(at));
                Suite.same(List.of("new"), values(take(consumer, 1)));
            }
        });
        Suite.check("topics", "deleteRecords", () -> {
            String name = topic("trimmed", 1);
            TopicPartition at = new TopicPartition(name, 0);
            send(name, texts(0, 20), Map.of());
            Suite.same(8L, admin.deleteRecords(Map.of(at, RecordsToDelete.beforeOffset(8))).lowWatermarks().get(at).get().lowWatermark());
            Suite.same(8L, listed(at, OffsetSpec.earliest()).offset());
            Suite.same(texts(8, 12), values(read(name, 0, 0, 12)));
            refused(org.apache.kafka.common.errors.OffsetOutOfRangeException.class, () -> admin.deleteRecords(Map.of(at, RecordsToDelete.beforeOffset(99))).all().get());
            Suite.same(20L, admin.deleteRecords(Map.of(at, RecordsToDelete.beforeOffset(-1))).lowWatermarks().get(at).get().lowWatermark());
        });
    }

    private static void configs() {
        Suite.check("configs", "topic", () -> {
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic("configs", 1, Map.of("retention.ms", "86400000")));
            Config seen = config(resource);
            Suite.same(ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG, seen.get("retention.ms").source());
            Suite.same(ConfigEntry.ConfigType.LONG, seen.get("retention.ms").type());
            Suite.require(seen.get("retention.ms").documentation() != null, seen.get("retention.ms"));
            Suite.same("delete", seen.get("cleanup.policy").value());
            Suite.require(seen.get("cleanup.policy").isDefault(), seen.get("cleanup.policy"));
            alter(resource, "retention.ms", null, AlterConfigOp.OpType.DELETE);
            alter(resource, "cleanup.policy", "compact", AlterConfigOp.OpType.APPEND);
            alter(resource, "max.message.bytes", "123456", AlterConfigOp.OpType.SET);
            Suite.settle(() -> Suite.same(List.of("604800000", "delete,compact", "123456"),
                List.of(config(resource).get("retention.ms").value(), config(resource).get("cleanup.policy").value(), config(resource).get("max.message.bytes").value())));
            alter(resource, "cleanup.policy", "delete", AlterConfigOp.OpType.SUBTRACT);
            Suite.settle(() -> Suite.same("compact", config(resource).get("cleanup.policy").value()));
            refused(InvalidConfigurationException.class, () -> alter(resource, "retention.ms", "x", AlterConfigOp.OpType.SET));
            refused(InvalidConfigurationException.class, () -> alter(resource, "no.such.key", "1", AlterConfigOp.OpType.SET));
            refused(UnknownTopicOrPartitionException.class, () -> config(new ConfigResource(ConfigResource.Type.TOPIC, resource.name() + "-none")));
            refused(RecordTooLargeException.class, () -> send(resource.name(), List.of(random(200_000)), Map.of()));
        });
        Suite.check("configs", "broker", () -> {
            ConfigResource resource = new ConfigResource(ConfigResource.Type.BROKER, node().idString());
            Config seen = config(resource);
            Suite.require(seen.get("log.dirs").isReadOnly(), seen.get("log.dirs"));
            Suite.require(!seen.get("log.cleaner.backoff.ms").isReadOnly(), seen.get("log.cleaner.backoff.ms"));
            Suite.same(ConfigEntry.ConfigType.INT, seen.get("num.partitions").type());
            alter(resource, "log.cleaner.backoff.ms", "14200", AlterConfigOp.OpType.SET);
            try {
                Suite.settle(() -> Suite.same("14200", config(resource).get("log.cleaner.backoff.ms").value()));
                Suite.same(ConfigEntry.ConfigSource.DYNAMIC_BROKER_CONFIG, config(resource).get("log.cleaner.backoff.ms").source());
            } finally {
                alter(resource, "log.cleaner.backoff.ms", null, AlterConfigOp.OpType.DELETE);
            }
            refused(InvalidRequestException.class, () -> alter(resource, "log.dirs", "/x", AlterConfigOp.OpType.SET));
        });
        Suite.check("configs", "broker loggers", () -> {
            ConfigResource resource = new ConfigResource(ConfigResource.Type.BROKER_LOGGER, node().idString());
            ConfigEntry logger = config(resource).entries().stream().sorted((a, b) -> a.name().compareTo(b.name())).findFirst().orElseThrow();
            alter(resource, logger.name(), "ERROR", AlterConfigOp.OpType.SET);
            Suite.settle(() -> Suite.same("ERROR", config(resource).get(logger.name()).value()));
            alter(resource, logger.name(), logger.value(), AlterConfigOp.OpType.SET);
        });
    }

    private static void cluster() {
        Suite.check("cluster", "describeCluster", () -> {
            DescribeClusterResult seen = admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
            Suite.require(seen.clusterId().get().length() == 22, seen.clusterId().get());
            Suite.same(Suite.BOOTSTRAP.replaceAll(".*:", ""), String.valueOf(node().port()));
            Suite.require(seen.nodes().get().contains(seen.controller().get()), seen.controller().get());
            Suite.require(seen.authorizedOperations().get().contains(AclOperation.CREATE), seen.authorizedOperations().get());
        });
        Suite.check("cluster", "describeLogDirs", () -> {
            String name = topic("sized", 2);
            send(name, 0, List.of(random(100_000)), Map.of());
            int id = node().id();
            Map<String, LogDirDescription> seen = admin.describeLogDirs(List.of(id)).allDescriptions().get().get(id);
            Map<TopicPartition, ReplicaInfo> replicas = new HashMap<>();
            for (Map.Entry<String, LogDirDescription> directory : seen.entrySet()) {
                Suite.require(directory.getKey().startsWith("/"), directory.getKey());
                Suite.require(directory.getValue().error() == null, directory.getValue().error());
                Suite.require(directory.getValue().totalBytes().getAsLong() > directory.getValue().usableBytes().getAsLong(), directory);
                replicas.putAll(directory.getValue().replicaInfos());
            }
            long size = replicas.get(new TopicPartition(name, 0)).size();
            Suite.require(size > 100_000 && size < 110_000, size);
            Suite.same(0L, replicas.get(new TopicPartition(name, 1)).size());
        });
        Suite.check("cluster", "electLeaders and reassignments", () -> {
            TopicPartition at = new TopicPartition(topic("elected", 1), 0);
            refused(ElectionNotNeededException.class, () -> {
                Optional<Throwable> wrong = admin.electLeaders(ElectionType.PREFERRED, Set.of(at)).partitions().get().get(at);
                if (wrong.isPresent()) throw (Exception) wrong.get();
            });
            Suite.same(Map.of(), admin.listPartitionReassignments().reassignments().get());
            refused(InvalidReplicaAssignmentException.class, () ->
                admin.alterPartitionReassignments(Map.of(at, Optional.of(new NewPartitionReassignment(List.of(77))))).all().get());
            refused(NoReassignmentInProgressException.class, () ->
                admin.alterPartitionReassignments(Map.of(at, Optional.empty())).all().get());
        });
        Suite.check("cluster", "describeFeatures", () ->
            Suite.require(admin.describeFeatures().featureMetadata().get() != null, "none"));
    }

    private static void create(NewTopic topic) throws Exception {
        admin.createTopics(List.of(topic)).all().get();
    }

    private static int partitions(String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
    }

    private static Node node() throws Exception {
        return admin.describeCluster().nodes().get().iterator().next();
    }

    private static Config config(ConfigResource resource) throws Exception {
        return admin.describeConfigs(List.of(resource), new DescribeConfigsOptions().includeDocumentation(true)).all().get().get(resource);
    }

    private static void alter(ConfigResource resource, String key, String value, AlterConfigOp.OpType how) throws Exception {
        admin.incrementalAlterConfigs(Map.of(resource, List.of(new AlterConfigOp(new ConfigEntry(key, value), how)))).all().get();
    }

    // Shared

    private static void refused(Class<? extends Throwable> error, Suite.Body body) throws Exception {
        try {
            body.run();
        } catch (Exception thrown) {
            Throwable cause = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
            if (error.isInstance(cause)) return;
            throw new AssertionError("want " + error.getSimpleName() + ", seen " + cause);
        }
        throw new AssertionError(error.getSimpleName() + " did not come");
    }

    private static String topic(String name, int partitions) throws Exception {
        return topic(name, partitions, Map.of());
    }

    /** Creates a topic and waits until every partition answers. */
    private static String topic(String name, int partitions, Map<String, String> configs) throws Exception {
        String full = Suite.RUN + "-" + name;
        Suite.until(LIMIT, () -> {
            try {
                create(new NewTopic(full, partitions, (short) 1).configs(configs));
            } catch (ExecutionException deleted) {
                // A name that was deleted may be taken for a moment longer.
                if (deleted.getCause() instanceof TopicExistsException) return false;
                throw deleted;
            }
            return true;
        });
        for (int partition = 0; partition < partitions; partition++) {
            int one = partition;
            Suite.until(LIMIT, () -> {
                try {
                    return end(full, one) == 0;
                } catch (ExecutionException notYet) {
                    return false;
                }
            });
        }
        return full;
    }

    private static long end(String topic, int partition) throws Exception {
        return listed(new TopicPartition(topic, partition), OffsetSpec.latest()).offset();
    }

    private static String group(String name) {
        return Suite.RUN + "-g-" + name;
    }

    private static Producer<String, String> producer(Map<String, ?> more) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", Suite.BOOTSTRAP, "delivery.timeout.ms", 30000,
            "request.timeout.ms", 15000));
        settings.putAll(more);
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    private static List<RecordMetadata> send(String topic, List<String> values, Map<String, ?> more) throws Exception {
        return send(topic, 0, values, more);
    }

    private static List<RecordMetadata> send(String topic, int partition, List<String> values, Map<String, ?> more) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        List<RecordMetadata> acked = new ArrayList<>();
        try (Producer<String, String> producer = producer(more)) {
            for (String value : values) sent.add(producer.send(new ProducerRecord<>(topic, partition, null, value)));
            for (Future<RecordMetadata> one : sent) acked.add(one.get(25, TimeUnit.SECONDS));
        }
        return acked;
    }

    private static Map<String, Object> consumerSettings(Map<String, ?> more) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", Suite.BOOTSTRAP, "auto.offset.reset", "earliest",
            "enable.auto.commit", "false", "key.deserializer", StringDeserializer.class.getName(),
            "value.deserializer", StringDeserializer.class.getName()));
        settings.putAll(more);
        return settings;
    }

    private static Consumer<String, String> consumer(Map<String, ?> more) {
        return new KafkaConsumer<>(consumerSettings(more));
    }

    private static List<ConsumerRecord<String, String>> take(Consumer<String, String> consumer, int count) {
        return take(consumer, count, Integer.MAX_VALUE);
    }

    private static List<ConsumerRecord<String, String>> take(Consumer<String, String> consumer, int count, int most) {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        long end = System.nanoTime() + LIMIT.toNanos();
        while (found.size() < count) {
            if (System.nanoTime() > end) throw new AssertionError(found.size() + " of " + count + " records came");
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                if (found.size() < most) found.add(record);
            }
        }
        return found;
    }

    private static List<ConsumerRecord<String, String>> read(String topic, int partition, long offset, int count) {
        try (Consumer<String, String> consumer = consumer(Map.of())) {
            TopicPartition at = new TopicPartition(topic, partition);
            consumer.assign(List.of(at));
            consumer.seek(at, offset);
            List<ConsumerRecord<String, String>> found = take(consumer, count);
            Suite.require(consumer.poll(Duration.ofMillis(200)).isEmpty(), "more records than were sent");
            return found;
        }
    }

    private static List<String> values(List<ConsumerRecord<String, String>> records) {
        return records.stream().map(ConsumerRecord::value).toList();
    }

    private static List<String> texts(int first, int count) {
        return IntStream.range(first, first + count).mapToObj(i -> "record " + i + " of some text, of some text").toList();
    }

    private static String random(int size) {
        byte[] bytes = new byte[size];
        new Random().nextBytes(bytes);
        for (int i = 0; i < size; i++) bytes[i] = (byte) ('0' + (bytes[i] & 63));
        return new String(bytes, StandardCharsets.US_ASCII);
    }
}
