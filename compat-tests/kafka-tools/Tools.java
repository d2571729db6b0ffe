import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.utils.internals.AppInfoParser;
import org.apache.kafka.common.utils.internals.Exit;

/** Kafka's command-line tools, run by their main methods as their scripts would. */
public final class Tools {
    private static final String TOPIC = Suite.RUN + "-t";
    private static final String GROUP = Suite.RUN + "-g";
    private static String broker;

    /** What a tool printed to both streams, and how it left. */
    record Ran(int status, String text) {
        Ran ok() {
            Suite.require(status == 0, "status " + status + ", " + text);
            return this;
        }

        Ran has(String... parts) {
            for (String part : parts) Suite.require(text.contains(part), "no '" + part + "' in: " + text);
            return this;
        }

        Ran lacks(String part) {
            Suite.require(!text.contains(part), "'" + part + "' in: " + text);
            return this;
        }

        Ran like(String pattern) {
            Suite.require(Pattern.compile(pattern, Pattern.DOTALL).matcher(text).find(), "no /" + pattern + "/ in: " + text);
            return this;
        }
    }

    private static final class Left extends Error {
        Left() {
            super("exit", null, false, false);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Suite.client("kafka-tools", AppInfoParser.getVersion());
        try (Admin admin = Admin.create(java.util.Map.of("bootstrap.servers", Suite.BOOTSTRAP))) {
            broker = admin.describeCluster().nodes().get(20, TimeUnit.SECONDS).iterator().next().idString();
        }
        topics();
        consoles();
        offsets();
        groups();
        configs();
        cluster();
        performance();
        files();
        Suite.check("topics", "kafka-topics --delete", () -> {
            topic("--delete", "--topic", TOPIC).ok();
            Suite.until(Duration.ofSeconds(10), () -> !topic("--list").ok().text().contains(TOPIC + "\n"));
        });
        Suite.finish();
    }

    private static void topics() {
        Suite.check("topics", "kafka-topics --create", () ->
            topic("--create", "--topic", TOPIC, "--partitions", "3", "--replication-factor", "1",
                "--config", "retention.ms=86400000").ok().has("Created topic " + TOPIC));
        Suite.check("topics", "kafka-topics --create, exists", () -> {
            Ran ran = topic("--create", "--topic", TOPIC);
            Suite.same(1, ran.status());
            ran.has("already exists");
            topic("--create", "--if-not-exists", "--topic", TOPIC).ok();
        });
        Suite.check("topics", "kafka-topics --create, refused", () -> {
            Suite.same(1, topic("--create", "--topic", TOPIC + "/x").has("InvalidTopicException").status());
            Suite.same(1, topic("--create", "--topic", TOPIC + "-rf", "--replication-factor", "9")
                .has("InvalidReplicationFactorException").status());
            Suite.same(1, topic("--create", "--topic", TOPIC + "-config", "--config", "retention.ms=x")
                .has("retention.ms").status());
        });
        Suite.check("topics", "kafka-topics --list", () -> Suite.settle(() -> topic("--list").ok().has(TOPIC + "\n")));
        Suite.check("topics", "kafka-topics --describe", () ->
            Suite.settle(() -> topic("--describe", "--topic", TOPIC).ok()
                .like("Topic: " + TOPIC + "\tTopicId: [\\w-]{22}\tPartitionCount: 3\tReplicationFactor: 1\tConfigs: [^\n]*retention.ms=86400000")
                .like("Partition: 2\tLeader: " + broker + "\tReplicas: " + broker + "\tIsr: " + broker)));
        Suite.check("topics", "kafka-topics --alter --partitions", () -> {
            topic("--alter", "--topic", TOPIC, "--partitions", "4").ok();
            Suite.until(Duration.ofSeconds(10), () -> topic("--describe", "--topic", TOPIC).ok().text().contains("PartitionCount: 4"));
            Suite.same(1, topic("--alter", "--topic", TOPIC, "--partitions", "2").status());
        });
        Suite.check("topics", "kafka-topics --describe, filters", () -> {
            topic("--describe", "--unavailable-partitions", "--topic", TOPIC).ok().lacks("Partition:");
            topic("--describe", "--topics-with-overrides", "--topic", TOPIC).ok().has("retention.ms=86400000");
            Suite.same(1, topic("--describe", "--topic", TOPIC + "-none").has("does not exist").status());
        });
    }

    private static void consoles() {
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            Suite.check("compression", "kafka-console-producer " + codec, () -> {
                String topic = Suite.RUN + "-compression-" + codec;
                topic("--create", "--topic", topic, "--partitions", "1").ok();
                List<String> lines = IntStream.range(0, 200)
                    .mapToObj(i -> "line " + i + " of some text, of some text").collect(Collectors.toList());
                produce(lines, "--topic", topic, "--compression-codec", codec).ok();
                Suite.same(lines, consume(200, "--topic", topic, "--from-beginning"));
            });
        }
        for (String acks : List.of("0", "1", "-1")) {
            Suite.check("acks", "kafka-console-producer " + acks, () -> {
                String topic = Suite.RUN + "-acks" + acks;
                topic("--create", "--topic", topic, "--partitions", "1").ok();
                produce(List.of("a", "b"), "--topic", topic, "--request-required-acks", acks,
                    "--command-property", "enable.idempotence=false").ok();
                Suite.same(List.of("a", "b"), consume(2, "--topic", topic, "--from-beginning"));
            });
        }
        Suite.check("idempotence", "kafka-console-producer (its default)", () -> {
            produce(List.of("plain"), "--topic", TOPIC, "--sync").ok();
            Suite.same(List.of("plain"), consume(1, "--topic", TOPIC, "--from-beginning"));
        });
        Suite.check("keys", "kafka-console-producer parse.key", () -> {
            String topic = Suite.RUN + "-keys";
            topic("--create", "--topic", topic, "--partitions", "1").ok();
            produce(List.of("k1=v1", "k2=NULL"), "--topic", topic, "--reader-property", "parse.key=true",
                "--reader-property", "key.separator==", "--reader-property", "null.marker=NULL").ok();
            Suite.same(List.of("0:k1\tv1", "1:k2\tnull"), consume(2, "--topic", topic, "--from-beginning",
                "--formatter-property", "print.key=true", "--formatter-property", "print.offset=true")
                .stream().map(line -> line.replace("Offset:", "").replaceFirst("\t", ":")).toList());
        });
        Suite.check("headers", "kafka-console-producer parse.headers", () -> {
            String topic = Suite.RUN + "-headers";
            topic("--create", "--topic", topic, "--partitions", "1").ok();
            produce(List.of("a:1,b:,a:2\tvalue"), "--topic", topic, "--reader-property", "parse.headers=true").ok();
            Suite.same(List.of("a:1,b:,a:2\tvalue"), consume(1, "--topic", topic, "--from-beginning",
                "--formatter-property", "print.headers=true"));
        });
        Suite.check("timestamps", "kafka-console-consumer print.timestamp", () -> {
            String line = consume(1, "--topic", TOPIC, "--from-beginning", "--formatter-property", "print.timestamp=true").get(0);
            Matcher seen = Pattern.compile("CreateTime:(\\d+)\tplain").matcher(line);
            Suite.require(seen.matches(), line);
            long age = System.currentTimeMillis() - Long.parseLong(seen.group(1));
            Suite.require(age >= 0 && age < 120_000, age);
        });
    }

    private static void offsets() {
        String topic = Suite.RUN + "-offsets";
        Suite.check("offsets", "kafka-console-consumer --offset", () -> {
            topic("--create", "--topic", topic, "--partitions", "2").ok();
            // Ten records of one key lie in one partition; which, the offsets tell.
            produce(numbers(10).stream().map(n -> "k=" + n).toList(), "--topic", topic,
                "--reader-property", "parse.key=true", "--reader-property", "key.separator==").ok();
            Suite.same(numbers(10).subList(7, 10), consume(3, "--topic", topic, "--partition", keyed(topic), "--offset", "7"));
        });
        Suite.check("offsets", "kafka-get-offsets", () -> {
            String full = keyed(topic);
            String empty = full.equals("0") ? "1" : "0";
            offsets("--topic", topic).ok().has(topic + ":" + full + ":10", topic + ":" + empty + ":0");
            offsets("--topic", topic, "--time", "earliest").ok().has(topic + ":" + full + ":0");
            offsets("--topic-partitions", topic + ":" + full, "--time", "max-timestamp").ok().like(topic + ":" + full + ":[0-9]");
        });
        Suite.check("timestamps", "kafka-get-offsets --time", () -> {
            String full = topic + ":" + keyed(topic);
            offsets("--topic-partitions", full, "--time", "1").ok().has(full + ":0");
            offsets("--topic-partitions", full, "--time", String.valueOf(System.currentTimeMillis() + 600_000)).ok().lacks(full + ":");
        });
        Suite.check("topics", "kafka-delete-records", () -> {
            String full = keyed(topic);
            Path json = json("{\"partitions\":[{\"topic\":\"" + topic + "\",\"partition\":" + full + ",\"offset\":4}],\"version\":1}");
            run("DeleteRecordsCommand", "", "--bootstrap-server", Suite.BOOTSTRAP, "--offset-json-file", json.toString())
                .ok().has("low_watermark: 4");
            offsets("--topic", topic, "--time", "earliest").ok().has(topic + ":" + full + ":4");
            Suite.same(numbers(10).subList(4, 10), consume(6, "--topic", topic, "--from-beginning"));
        });
        Suite.check("topics", "kafka-delete-records, refused", () -> {
            Path json = json("{\"partitions\":[{\"topic\":\"" + topic + "\",\"partition\":" + keyed(topic) + ",\"offset\":99}],\"version\":1}");
            run("DeleteRecordsCommand", "", "--bootstrap-server", Suite.BOOTSTRAP, "--offset-json-file", json.toString())
                .has("OffsetOutOfRange");
        });
    }

    private static void groups() {
        String topic = Suite.RUN + "-grouped";
        Suite.check("groups", "kafka-console-consumer --group", () -> {
            topic("--create", "--topic", topic, "--partitions", "1").ok();
            produce(numbers(6), "--topic", topic).ok();
            Suite.same(numbers(6).subList(0, 4), consume(4, "--topic", topic, "--group", GROUP, "--from-beginning"));
            // What was committed is where the next one begins.
            Suite.same(numbers(6).subList(4, 6), consume(2, "--topic", topic, "--group", GROUP));
        });
        Suite.check("groups", "kafka-consumer-groups --list", () -> {
            group("--list").ok().has(GROUP + "\n");
            group("--list", "--state", "Empty").ok().like(GROUP + "\\s+Empty");
            group("--list", "--type", "classic").ok().like(GROUP + "\\s+Classic");
        });
        Suite.check("groups", "kafka-groups --list", () ->
            run("GroupsCommand", "", "--bootstrap-server", Suite.BOOTSTRAP, "--list").ok()
                .like(GROUP + "\\s+Classic\\s+consumer"));
        Suite.check("groups", "kafka-consumer-groups --describe", () -> {
            group("--describe", "--group", GROUP).ok().like(GROUP + "\\s+" + topic + "\\s+0\\s+6\\s+6\\s+0\\s+-\\s+-\\s+-")
                .has("has no active members");
            group("--describe", "--group", GROUP, "--state").ok().like(GROUP + "\\s+" + ".*Empty\\s+0");
            group("--describe", "--group", GROUP, "--members").has("has no active members");
        });
        Suite.check("groups", "kafka-consumer-groups --describe, with a member", () -> {
            String active = GROUP + "-active";
            Thread member = new Thread(() -> quietly(() ->
                consume(7, "--topic", topic, "--group", active, "--from-beginning", "--command-property", "client.id=the-member")));
            member.setDaemon(true);
            member.start();
            Suite.until(Duration.ofSeconds(20), () -> group("--describe", "--group", active, "--state").text().contains("Stable"));
            group("--describe", "--group", active, "--members", "--verbose").ok()
                .like(active + "\\s+the-member-[\\w-]+\\s+/127.0.0.1\\s+the-member\\s+1.*" + topic + ".*0");
            group("--delete", "--group", active).has("GroupNotEmptyException");
            produce(List.of("the seventh"), "--topic", topic).ok();
            member.join(15_000);
            Suite.require(!member.isAlive(), "the member still reads");
        });
        Suite.check("groups", "kafka-consumer-groups --reset-offsets", () -> {
            String at = GROUP + "\\s+" + topic + "\\s+0\\s+";
            reset(topic, "--to-earliest", "--dry-run").ok().like(at + "0");
            group("--describe", "--group", GROUP).ok().like(at + "6");
            reset(topic, "--to-offset", "3", "--execute").ok().like(at + "3");
            group("--describe", "--group", GROUP).ok().like(at + "3");
            reset(topic, "--shift-by", "-1", "--execute").ok().like(at + "2");
            reset(topic, "--to-datetime", "2000-01-01T00:00:00.000", "--execute").ok().like(at + "0");
            reset(topic, "--to-latest", "--execute").ok().like(at + "7");
        });
        Suite.check("groups", "kafka-consumer-groups --delete-offsets", () ->
            group("--delete-offsets", "--group", GROUP, "--topic", topic).ok().like(topic + "\\s+0\\s+Successful"));
        Suite.check("groups", "kafka-consumer-groups --delete", () -> {
            reset(topic, "--to-latest", "--execute").ok();
            group("--delete", "--group", GROUP).ok().has("was successful");
            group("--list").ok().lacks(GROUP + "\n");
            group("--delete", "--group", GROUP + "-none").like("GroupIdNotFoundException");
        });
    }

    private static void configs() {
        Suite.check("configs", "kafka-configs, topic", () -> {
            String[] named = {"--entity-type", "topics", "--entity-name", TOPIC};
            config(named, "--alter", "--add-config", "max.message.bytes=200000,cleanup.policy=[compact,delete]").ok().has("Completed updating");
            Suite.settle(() -> config(named, "--describe").ok()
                .has("max.message.bytes=200000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:max.message.bytes=200000, DEFAULT_CONFIG:message.max.bytes=1048588}")
                .has("cleanup.policy=compact,delete", "retention.ms=86400000").lacks("segment.bytes"));
            config(named, "--describe", "--all").ok()
                .has("segment.bytes=1073741824", "compression.type=producer", "min.insync.replicas=1");
            config(named, "--alter", "--delete-config", "cleanup.policy").ok();
            Suite.settle(() -> config(named, "--describe").ok().lacks("cleanup.policy"));
        });
        Suite.check("configs", "kafka-configs, topic refused", () -> {
            String[] named = {"--entity-type", "topics", "--entity-name", TOPIC};
            Suite.same(1, config(named, "--alter", "--add-config", "no.such.key=1").status());
            Suite.same(1, config(named, "--alter", "--add-config", "retention.ms=soon").has("retention.ms").status());
            Suite.same(1, config(new String[] {"--entity-type", "topics", "--entity-name", TOPIC + "-none"},
                "--alter", "--add-config", "retention.ms=1").status());
        });
        Suite.check("configs", "kafka-configs, broker", () -> {
            String[] named = {"--entity-type", "brokers", "--entity-name", broker};
            config(named, "--describe", "--all").ok().has("log.retention.hours=168", "num.partitions=", "listeners=PLAINTEXT");
            config(named, "--alter", "--add-config", "log.cleaner.backoff.ms=14000").ok();
            try {
                Suite.settle(() -> config(named, "--describe").ok()
                    .has("log.cleaner.backoff.ms=14000 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.cleaner.backoff.ms=14000, "));
            } finally {
                config(named, "--alter", "--delete-config", "log.cleaner.backoff.ms").ok();
            }
            Suite.settle(() -> config(named, "--describe").ok().lacks("log.cleaner.backoff.ms=14000"));
        });
        Suite.check("configs", "kafka-configs, broker default", () -> {
            String[] every = {"--entity-type", "brokers", "--entity-default"};
            config(every, "--alter", "--add-config", "log.cleaner.backoff.ms=13000").ok();
            try {
                Suite.settle(() -> config(every, "--describe").ok().has("log.cleaner.backoff.ms=13000"));
                Suite.settle(() -> config(new String[] {"--entity-type", "brokers", "--entity-name", broker}, "--describe", "--all")
                    .ok().has("DYNAMIC_DEFAULT_BROKER_CONFIG:log.cleaner.backoff.ms=13000"));
            } finally {
                config(every, "--alter", "--delete-config", "log.cleaner.backoff.ms").ok();
            }
        });
        Suite.check("configs", "kafka-configs, broker read-only key", () ->
            Suite.same(1, config(new String[] {"--entity-type", "brokers", "--entity-name", broker},
                "--alter", "--add-config", "log.dirs=/elsewhere").status()));
        Suite.check("configs", "kafka-configs, broker-loggers", () -> {
            String[] named = {"--entity-type", "broker-loggers", "--entity-name", broker};
            Matcher first = Pattern.compile("(?m)^  ([^ =]+)=(TRACE|DEBUG|INFO|WARN|ERROR|FATAL) ").matcher(config(named, "--describe").ok().text());
            Suite.require(first.find(), "no logger is listed");
            String logger = first.group(1);
            config(named, "--alter", "--add-config", logger + "=ERROR").ok();
            try {
                config(named, "--describe").ok().has("  " + logger + "=ERROR ");
                Suite.same(1, config(named, "--alter", "--add-config", logger + "=LOUD").status());
            } finally {
                config(named, "--alter", "--add-config", logger + "=" + first.group(2)).ok();
            }
        });
    }

    private static void cluster() {
        Suite.check("cluster", "kafka-broker-api-versions", () ->
            run("BrokerApiVersionsCommand", "", "--bootstrap-server", Suite.BOOTSTRAP).ok()
                .like("\\(id: " + broker + " .*Produce\\(0\\): 0 to 1\\d \\[usable: 1\\d\\].*ApiVersions\\(18\\): 0 to"));
        Suite.check("cluster", "kafka-cluster", () -> {
            run("ClusterTool", "", "cluster-id", "--bootstrap-server", Suite.BOOTSTRAP).ok().like("Cluster ID: [\\w-]{22}");
            run("ClusterTool", "", "list-endpoints", "--bootstrap-server", Suite.BOOTSTRAP).ok().like("(?m)^" + broker + "\\s");
        });
        Suite.check("cluster", "kafka-features", () ->
            run("FeatureCommand", "", "--bootstrap-server", Suite.BOOTSTRAP, "describe").ok());
        Suite.check("cluster", "kafka-log-dirs", () -> {
            String text = run("LogDirsCommand", "", "--bootstrap-server", Suite.BOOTSTRAP, "--describe", "--topic-list", TOPIC).ok().text();
            for (int i = 0; i < 4; i++) {
                Suite.require(Pattern.compile("\"partition\":\"" + TOPIC + "-" + i + "\",\"size\":\\d+,\"offsetLag\":0,\"isFuture\":false").matcher(text).find(), text);
            }
            Suite.require(text.contains("\"error\":null") && text.contains("\"broker\":" + broker), text);
        });
        Suite.check("cluster", "kafka-leader-election", () -> {
            run("LeaderElectionCommand", "", "--bootstrap-server", Suite.BOOTSTRAP, "--election-type", "preferred",
                "--topic", TOPIC, "--partition", "0").ok().has("Valid replica already elected for partitions " + TOPIC + "-0");
            run("LeaderElectionCommand", "", "--bootstrap-server", Suite.BOOTSTRAP, "--election-type", "preferred",
                "--topic", TOPIC, "--partition", "99").has("UnknownTopicOrPartitionException");
            run("LeaderElectionCommand", "", "--bootstrap-server", Suite.BOOTSTRAP, "--election-type", "preferred",
                "--all-topic-partitions").ok();
        });
        Suite.check("cluster", "kafka-reassign-partitions", () -> {
            String[] tool = {"--bootstrap-server", Suite.BOOTSTRAP};
            String move = "{\"version\":1,\"partitions\":[{\"topic\":\"" + TOPIC + "\",\"partition\":0,\"replicas\":[%s],\"log_dirs\":[\"any\"]}]}";
            Path topics = json("{\"topics\":[{\"topic\":\"" + TOPIC + "\"}],\"version\":1}");
            reassign("--topics-to-move-json-file", topics.toString(), "--broker-list", broker, "--generate").ok()
                .has("Proposed partition reassignment", "\"partition\":3,\"replicas\":[" + broker + "]");
            Path here = json(String.format(move, broker));
            reassign("--reassignment-json-file", here.toString(), "--execute").ok().has("Successfully started partition reassignment for " + TOPIC + "-0");
            Suite.until(Duration.ofSeconds(10), () -> reassign("--reassignment-json-file", here.toString(), "--verify").ok()
                .text().contains("Reassignment of partition " + TOPIC + "-0 is completed"));
            reassign("--list").ok().has("No partition reassignments found.");
            Path away = json(String.format(move, "77"));
            Suite.same(1, reassign("--reassignment-json-file", away.toString(), "--execute").status());
        });
        Suite.check("cluster", "kafka-transactions describe-producers", () ->
            run("TransactionsCommand", "", "--bootstrap-server", Suite.BOOTSTRAP, "describe-producers",
                "--topic", Suite.RUN + "-compression-gzip", "--partition", "0").ok().like("ProducerId.*\n\\d+\\s+\\d+\\s+-1\\s+199\\s"));
    }

    private static void performance() {
        String topic = Suite.RUN + "-perf";
        Suite.check("idempotence", "kafka-producer-perf-test", () -> {
            topic("--create", "--topic", topic, "--partitions", "3").ok();
            run("ProducerPerformance", "", "--topic", topic, "--num-records", "20000", "--record-size", "200",
                "--throughput", "-1", "--bootstrap-server", Suite.BOOTSTRAP, "--command-property", "acks=all").ok().has("20000 records sent");
            long sum = offsets("--topic", topic).ok().text().lines().mapToLong(line -> Long.parseLong(line.substring(line.lastIndexOf(':') + 1))).sum();
            Suite.same(20000L, sum);
        });
        Suite.check("groups", "kafka-consumer-perf-test", () ->
            run("ConsumerPerformance", "", "--bootstrap-server", Suite.BOOTSTRAP, "--topic", topic, "--num-records", "20000",
                "--group", GROUP + "-perf", "--timeout", "15000").ok().like(", 20000, "));
    }

    /** kafka-dump-log checks what it reads, so it also shows that the files are Kafka's. */
    private static void files() {
        String[] kinds = {"segments", "offset index", "time index", "offsets decoder", "producer snapshot"};
        String directory = System.getenv("LOG_DIR");
        if (directory == null) {
            for (String kind : kinds) Suite.skip("files", "kafka-dump-log, " + kind + ": LOG_DIR is not given");
            return;
        }
        String topic = Suite.RUN + "-perf";
        String rolled = Suite.RUN + "-rolled";
        Suite.check("files", "kafka-dump-log, segments", () -> {
            int records = 0;
            for (int i = 0; i < 3; i++) {
                String text = dump(file(directory, topic + "-" + i, ".log"), "--deep-iteration").ok().text();
                records += text.lines().filter(line -> line.startsWith("| offset:")).count();
            }
            Suite.same(20000, records);
            dump(file(directory, Suite.RUN + "-compression-zstd-0", ".log"), "--print-data-log").ok()
                .has("compresscodec: zstd", "isvalid: true", "payload: line 199 of some text").lacks("isvalid: false");
        });
        // A closed segment has its indexes and a snapshot; the active one need not have any yet.
        Suite.check("files", "kafka-dump-log, closed segments", () -> {
            topic("--create", "--topic", rolled, "--partitions", "1", "--config", "segment.bytes=1048576").ok();
            run("ProducerPerformance", "", "--topic", rolled, "--num-records", "3000", "--record-size", "1000",
                "--throughput", "-1", "--bootstrap-server", Suite.BOOTSTRAP).ok();
            dump(file(directory, rolled + "-0", ".log")).ok().like("baseOffset: \\d{4}").lacks("isvalid: false");
        });
        Suite.check("files", "kafka-dump-log, offset index", () -> {
            Path index = file(directory, rolled + "-0", "00000000000000000000.index");
            dump(index, "--index-sanity-check").ok().has("passed sanity check");
            dump(index).ok().like("offset: \\d+ position: \\d+").lacks("Mismatch");
        });
        Suite.check("files", "kafka-dump-log, time index", () ->
            dump(file(directory, rolled + "-0", "00000000000000000000.timeindex")).ok().like("timestamp: \\d+ offset: \\d+").lacks("Found").lacks("mismatch"));
        Suite.check("files", "kafka-dump-log, producer snapshot", () ->
            dump(file(directory, rolled + "-0", ".snapshot")).ok().like("producerId: \\d+ producerEpoch: 0"));
        Suite.check("files", "kafka-dump-log, offsets decoder", () -> {
            StringBuilder all = new StringBuilder();
            try (Stream<Path> partitions = Files.list(Path.of(directory))) {
                for (Path partition : partitions.filter(path -> path.getFileName().toString().startsWith("__consumer_offsets-")).toList()) {
                    all.append(dump(file(directory, partition.getFileName().toString(), ".log"), "--offsets-decoder").ok().text());
                }
            }
            new Ran(0, all.toString()).lacks("isvalid: false")
                .like("\"group\":\"" + GROUP + "-perf\",\"topic\":\"" + topic + "\",\"partition\":\\d")
                .like("\"type\":\"2\",\"data\":\\{\"group\":\"" + GROUP + "-perf\"").like("\"protocolType\":\"consumer\"");
        });
    }

    private static Ran dump(Path file, String... more) throws Exception {
        return run("DumpLogSegments", "", joined(new String[] {"--files", file.toString()}, more));
    }

    /** The newest file of a kind in a partition's directory. */
    private static Path file(String directory, String partition, String kind) throws Exception {
        try (Stream<Path> files = Files.list(Path.of(directory, partition))) {
            return files.filter(path -> path.toString().endsWith(kind)).sorted().reduce((a, b) -> b)
                .orElseThrow(() -> new AssertionError("no " + kind + " in " + partition));
        }
    }

    private static List<String> numbers(int count) {
        return IntStream.range(0, count).mapToObj(String::valueOf).collect(Collectors.toList());
    }

    /** The partition that the key of `offsets` fell into. */
    private static String keyed(String topic) throws Exception {
        Matcher full = Pattern.compile(Pattern.quote(topic) + ":(\\d):10").matcher(offsets("--topic", topic).ok().text());
        Suite.require(full.find(), "no partition with ten records: " + offsets("--topic", topic).text());
        return full.group(1);
    }

    private static Path json(String text) throws Exception {
        Path file = Files.createTempFile("compat", ".json");
        file.toFile().deleteOnExit();
        return Files.writeString(file, text);
    }

    private static void quietly(Suite.Body body) {
        try {
            body.run();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static Ran topic(String... more) throws Exception {
        return run("TopicCommand", "", joined(new String[] {"--bootstrap-server", Suite.BOOTSTRAP}, more));
    }

    private static Ran offsets(String... more) throws Exception {
        return run("GetOffsetShell", "", joined(new String[] {"--bootstrap-server", Suite.BOOTSTRAP}, more));
    }

    private static Ran group(String... more) throws Exception {
        return run("consumer.group.ConsumerGroupCommand", "", joined(new String[] {"--bootstrap-server", Suite.BOOTSTRAP}, more));
    }

    private static Ran reset(String topic, String... more) throws Exception {
        return group(joined(new String[] {"--reset-offsets", "--group", GROUP, "--topic", topic}, more));
    }

    private static Ran reassign(String... more) throws Exception {
        return run("reassign.ReassignPartitionsCommand", "", joined(new String[] {"--bootstrap-server", Suite.BOOTSTRAP}, more));
    }

    private static Ran config(String[] entity, String... more) throws Exception {
        return run("ConfigCommand", "", joined(joined(new String[] {"--bootstrap-server", Suite.BOOTSTRAP}, entity), more));
    }

    private static Ran produce(List<String> lines, String... more) throws Exception {
        return run("ConsoleProducer", String.join("\n", lines) + "\n", joined(new String[] {"--bootstrap-server", Suite.BOOTSTRAP}, more));
    }

    private static List<String> consume(int count, String... more) throws Exception {
        Ran ran = run("consumer.ConsoleConsumer", "", joined(new String[] {"--bootstrap-server", Suite.BOOTSTRAP,
            "--max-messages", String.valueOf(count), "--timeout-ms", "20000"}, more));
        return ran.ok().text().lines()
            .filter(line -> !line.startsWith("Processed a total") && !line.startsWith("The consumer rebalance protocol"))
            .collect(Collectors.toList());
    }

    private static String[] joined(String[] a, String... b) {
        List<String> all = new ArrayList<>(Arrays.asList(a));
        all.addAll(Arrays.asList(b));
        return all.toArray(new String[0]);
    }

    /** What one thread's tool prints; two tools may run at once. */
    private static final ThreadLocal<ByteArrayOutputStream> PRINTED = new InheritableThreadLocal<>();
    private static final ThreadLocal<int[]> STATUS = new InheritableThreadLocal<>();
    private static final ThreadLocal<List<Runnable>> HOOKS = ThreadLocal.withInitial(ArrayList::new);
    private static final ThreadLocal<InputStream> INPUT = new InheritableThreadLocal<>();
    private static final InputStream NOTHING = System.in;
    private static final PrintStream ERR = System.err;

    static {
        Exit.setExitProcedure((status, message) -> {
            int[] seen = STATUS.get();
            // A tool may catch what is thrown here and leave again: the first word counts.
            if (seen != null && seen[0] < 0) seen[0] = status;
            if (message != null) System.err.println(message);
            throw new Left();
        });
        // Some tools close what they opened in a shutdown hook.
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.get().add(hook));
        System.setOut(new PrintStream(new Divided(), true, StandardCharsets.UTF_8));
        System.setErr(System.out);
        System.setIn(new InputStream() {
            @Override public int read() throws java.io.IOException {
                return input().read();
            }

            @Override public int read(byte[] into, int from, int count) throws java.io.IOException {
                return input().read(into, from, count);
            }

            private InputStream input() {
                return INPUT.get() == null ? NOTHING : INPUT.get();
            }
        });
    }

    private static final class Divided extends java.io.OutputStream {
        @Override public void write(int b) {
            write(new byte[] {(byte) b}, 0, 1);
        }

        @Override public void write(byte[] bytes, int from, int count) {
            ByteArrayOutputStream mine = PRINTED.get();
            if (mine != null) mine.write(bytes, from, count);
            else ERR.write(bytes, from, count);
        }
    }

    private static Ran run(String tool, String input, String... arguments) throws Exception {
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        int[] status = {-1};
        PRINTED.set(printed);
        STATUS.set(status);
        INPUT.set(new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8)));
        try {
            Class.forName("org.apache.kafka.tools." + tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
            if (status[0] < 0) status[0] = 0;
        } catch (InvocationTargetException left) {
            if (!(left.getCause() instanceof Left)) {
                // A thrown exception ends a JVM with 1.
                left.getCause().printStackTrace(System.out);
                status[0] = 1;
            }
        } finally {
            HOOKS.get().forEach(Runnable::run);
            HOOKS.remove();
            System.out.flush();
            PRINTED.remove();
            STATUS.remove();
            INPUT.remove();
        }
        return new Ran(status[0], printed.toString(StandardCharsets.UTF_8));
    }
}
