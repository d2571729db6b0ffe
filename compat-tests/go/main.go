// franz-go against a broker: one line a check.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"sort"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	bootstrap = os.Getenv("BOOTSTRAP")
	run       = os.Getenv("RUN")
	admin     *kadm.Client
	failed    bool
)

func check(feature, detail string, body func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := body(ctx); err != nil {
		failed = true
		fmt.Printf("FAIL %s %s: %s\n", feature, detail, strings.ReplaceAll(err.Error(), "\n", "|"))
		return
	}
	fmt.Printf("PASS %s %s\n", feature, detail)
}

func same(want, seen any) error {
	if !reflect.DeepEqual(want, seen) {
		return fmt.Errorf("want %v, seen %v", want, seen)
	}
	return nil
}

// until asks again until the look is content.
func until(ctx context.Context, what string, look func() bool) error {
	for !look() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("never came true: %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

func client(options ...kgo.Opt) *kgo.Client {
	base := []kgo.Opt{kgo.SeedBrokers(bootstrap), kgo.ClientID(run), kgo.FetchMaxWait(200 * time.Millisecond)}
	made, err := kgo.NewClient(append(base, options...)...)
	if err != nil {
		panic(err)
	}
	return made
}

func topic(ctx context.Context, name string, partitions int32, configs map[string]*string) (string, error) {
	full := run + "-" + name
	_, err := admin.CreateTopic(ctx, partitions, 1, configs, full)
	return full, err
}

func texts(count, first int) []string {
	var all []string
	for i := first; i < first+count; i++ {
		all = append(all, fmt.Sprintf("record %d of some text, of some text, of some text", i))
	}
	return all
}

func records(topic string, values []string) []*kgo.Record {
	var all []*kgo.Record
	for _, value := range values {
		all = append(all, &kgo.Record{Topic: topic, Value: []byte(value)})
	}
	return all
}

func produce(ctx context.Context, all []*kgo.Record, options ...kgo.Opt) error {
	producer := client(options...)
	defer producer.Close()
	return producer.ProduceSync(ctx, all...).FirstErr()
}

// read takes count records of partition 0 from an offset on, and makes sure that no more come.
func read(ctx context.Context, topic string, count int, from kgo.Offset) ([]*kgo.Record, error) {
	places := map[string]map[int32]kgo.Offset{topic: {0: from}}
	consumer := client(kgo.ConsumePartitions(places))
	defer consumer.Close()
	var all []*kgo.Record
	for len(all) < count {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("%d of %d records came: %w", len(all), count, err)
		}
		all = append(all, fetches.Records()...)
	}
	if len(all) != count {
		return nil, fmt.Errorf("%d records came, not %d", len(all), count)
	}
	return all, nil
}

func values(all []*kgo.Record) []string {
	var found []string
	for _, record := range all {
		found = append(found, string(record.Value))
	}
	return found
}

// storedAs asks the log: a client may fall back to none without a word.
func storedAs(topic, codec string) error {
	program := filepath.Join(os.Getenv("ROOT"), "compat-tests/lib/stored.py")
	out, err := exec.Command("python3", program, bootstrap, topic).Output()
	if err != nil {
		return err
	}
	return same(codec, strings.TrimSpace(string(out)))
}

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func compression(codec string) func(context.Context) error {
	return func(ctx context.Context) error {
		name, err := topic(ctx, "compression-"+codec, 1, nil)
		if err != nil {
			return err
		}
		sent := texts(500, 0)
		if err := produce(ctx, records(name, sent), kgo.ProducerBatchCompression(codecs[codec])); err != nil {
			return err
		}
		found, err := read(ctx, name, 500, kgo.NewOffset().AtStart())
		if err != nil {
			return err
		}
		return errors.Join(same(sent, values(found)), storedAs(name, codec))
	}
}

func acks(name string, acks kgo.Acks) func(context.Context) error {
	return func(ctx context.Context) error {
		full, err := topic(ctx, "acks-"+name, 1, nil)
		if err != nil {
			return err
		}
		sent := texts(300, 0)
		if err := produce(ctx, records(full, sent), kgo.RequiredAcks(acks), kgo.DisableIdempotentWrite()); err != nil {
			return err
		}
		found, err := read(ctx, full, 300, kgo.NewOffset().AtStart())
		if err != nil {
			return err
		}
		return same(sent, values(found))
	}
}

// idempotence keeps several small batches in flight, each with its sequence.
func idempotence(ctx context.Context) error {
	name, err := topic(ctx, "idempotence", 1, nil)
	if err != nil {
		return err
	}
	sent := texts(2000, 0)
	if err := produce(ctx, records(name, sent), kgo.ProducerBatchMaxBytes(1024)); err != nil {
		return err
	}
	found, err := read(ctx, name, 2000, kgo.NewOffset().AtStart())
	if err != nil {
		return err
	}
	return same(sent, values(found))
}

func keys(ctx context.Context) error {
	name, err := topic(ctx, "keys", 1, nil)
	if err != nil {
		return err
	}
	sent := []*kgo.Record{
		{Topic: name, Key: []byte("k"), Value: []byte("v")},
		{Topic: name, Key: []byte(""), Value: nil},
		{Topic: name, Key: nil, Value: []byte("")},
	}
	if err := produce(ctx, sent); err != nil {
		return err
	}
	found, err := read(ctx, name, 3, kgo.NewOffset().AtStart())
	if err != nil {
		return err
	}
	return errors.Join(
		same([]byte("k"), found[0].Key), same([]byte("v"), found[0].Value),
		same([]byte{}, found[1].Key), same([]byte(nil), found[1].Value),
		same([]byte(nil), found[2].Key), same([]byte{}, found[2].Value),
	)
}

func headers(ctx context.Context) error {
	name, err := topic(ctx, "headers", 1, nil)
	if err != nil {
		return err
	}
	sent := []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "a", Value: []byte{0, 255}}, {Key: "b", Value: nil}}
	if err := produce(ctx, []*kgo.Record{{Topic: name, Value: []byte("v"), Headers: sent}}); err != nil {
		return err
	}
	found, err := read(ctx, name, 1, kgo.NewOffset().AtStart())
	if err != nil {
		return err
	}
	return same(sent, found[0].Headers)
}

func offsets(ctx context.Context) error {
	name, err := topic(ctx, "offsets", 1, nil)
	if err != nil {
		return err
	}
	if err := produce(ctx, records(name, texts(100, 0))); err != nil {
		return err
	}
	found, err := read(ctx, name, 40, kgo.NewOffset().At(60))
	if err != nil {
		return err
	}
	starts, err := admin.ListStartOffsets(ctx, name)
	if err != nil {
		return err
	}
	ends, err := admin.ListEndOffsets(ctx, name)
	if err != nil {
		return err
	}
	start, _ := starts.Lookup(name, 0)
	end, _ := ends.Lookup(name, 0)
	return errors.Join(same(texts(40, 60), values(found)), same(int64(0), start.Offset), same(int64(100), end.Offset))
}

func timestamps(ctx context.Context) error {
	name, err := topic(ctx, "timestamps", 1, nil)
	if err != nil {
		return err
	}
	for _, at := range []int64{1000, 2000, 3000} {
		record := &kgo.Record{Topic: name, Value: []byte("x"), Timestamp: time.UnixMilli(at)}
		if err := produce(ctx, []*kgo.Record{record}); err != nil {
			return err
		}
	}
	for at, want := range map[int64]int64{1: 0, 1500: 1, 3000: 2} {
		listed, err := admin.ListOffsetsAfterMilli(ctx, at, name)
		if err != nil {
			return err
		}
		one, _ := listed.Lookup(name, 0)
		if err := same(want, one.Offset); err != nil {
			return err
		}
	}
	latest, err := admin.ListMaxTimestampOffsets(ctx, name)
	if err != nil {
		return err
	}
	one, _ := latest.Lookup(name, 0)
	return errors.Join(same(int64(2), one.Offset), same(int64(3000), one.Timestamp))
}

// fetchSessions reads many partitions over many polls: all but the first fetch are incremental.
func fetchSessions(ctx context.Context) error {
	name, err := topic(ctx, "sessions", 20, nil)
	if err != nil {
		return err
	}
	consumer := client(kgo.ConsumeTopics(name), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer consumer.Close()
	producer := client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer producer.Close()
	seen := map[string]int{}
	for round := 0; round < 10; round++ {
		for partition := int32(0); partition < 20; partition += 3 {
			value := fmt.Sprintf("%d/%d", round, partition)
			record := &kgo.Record{Topic: name, Partition: partition, Value: []byte(value)}
			if err := producer.ProduceSync(ctx, record).FirstErr(); err != nil {
				return err
			}
		}
		for len(seen) < (round+1)*7 {
			fetches := consumer.PollFetches(ctx)
			if err := fetches.Err(); err != nil {
				return err
			}
			fetches.EachRecord(func(record *kgo.Record) { seen[string(record.Value)]++ })
		}
	}
	for value, times := range seen {
		if times != 1 {
			return fmt.Errorf("%s came %d times", value, times)
		}
	}
	return nil
}

// member is a consumer in a group that knows what it owns.
type member struct {
	client *kgo.Client
	owned  chan map[int32]bool
	cancel context.CancelFunc
}

func join(ctx context.Context, group, topic string, options ...kgo.Opt) *member {
	m := &member{owned: make(chan map[int32]bool, 1)}
	m.owned <- map[int32]bool{}
	change := func(there bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
			owned := <-m.owned
			for _, partition := range changed[topic] {
				if there {
					owned[partition] = true
				} else {
					delete(owned, partition)
				}
			}
			m.owned <- owned
		}
	}
	options = append([]kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.SessionTimeout(6 * time.Second),
		kgo.HeartbeatInterval(300 * time.Millisecond), kgo.RebalanceTimeout(10 * time.Second),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(change(true)), kgo.OnPartitionsRevoked(change(false)), kgo.OnPartitionsLost(change(false)),
	}, options...)
	m.client = client(options...)
	ctx, m.cancel = context.WithCancel(ctx)
	go func() {
		for ctx.Err() == nil {
			m.client.PollFetches(ctx)
		}
	}()
	return m
}

func (m *member) partitions() []int {
	owned := <-m.owned
	var all []int
	for partition := range owned {
		all = append(all, int(partition))
	}
	m.owned <- owned
	sort.Ints(all)
	return all
}

func groupShares(name string, options ...kgo.Opt) func(context.Context) error {
	return func(ctx context.Context) error {
		full, err := topic(ctx, "shared-"+name, 4, nil)
		if err != nil {
			return err
		}
		group := full
		one := join(ctx, group, full, options...)
		defer one.client.Close()
		if err := until(ctx, "the first has all", func() bool { return len(one.partitions()) == 4 }); err != nil {
			return err
		}
		other := join(ctx, group, full, options...)
		err = until(ctx, "both have two", func() bool { return len(one.partitions()) == 2 && len(other.partitions()) == 2 })
		described, _ := admin.DescribeGroups(ctx, group)
		other.cancel()
		other.client.Close()
		if err != nil {
			return err
		}
		if err := same("Stable", described[group].State); err != nil {
			return err
		}
		return until(ctx, "the one left has all", func() bool { return len(one.partitions()) == 4 })
	}
}

// groupCrash leaves a member without a word: it is missed after its session.
func groupCrash(ctx context.Context) error {
	full, err := topic(ctx, "crash", 2, nil)
	if err != nil {
		return err
	}
	victim := exec.Command(os.Args[0], "member", full)
	if err := victim.Start(); err != nil {
		return err
	}
	defer victim.Process.Kill()
	one := join(ctx, full, full)
	defer one.client.Close()
	if err := until(ctx, "a partition each", func() bool {
		described, err := admin.DescribeGroups(ctx, full)
		return err == nil && len(described[full].Members) == 2 && len(one.partitions()) == 1
	}); err != nil {
		return err
	}
	if err := victim.Process.Kill(); err != nil {
		return err
	}
	return until(ctx, "both partitions", func() bool { return len(one.partitions()) == 2 })
}

func groupOffsets(ctx context.Context) error {
	full, err := topic(ctx, "committed", 1, nil)
	if err != nil {
		return err
	}
	if err := produce(ctx, records(full, texts(10, 0))); err != nil {
		return err
	}
	var toCommit kadm.Offsets
	toCommit.AddOffset(full, 0, 4, -1)
	if err := admin.CommitAllOffsets(ctx, full, toCommit); err != nil {
		return err
	}
	consumer := client(kgo.ConsumerGroup(full), kgo.ConsumeTopics(full), kgo.DisableAutoCommit())
	var found []*kgo.Record
	for len(found) < 6 {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			consumer.Close()
			return err
		}
		found = append(found, fetches.Records()...)
	}
	err = errors.Join(same(texts(6, 4), values(found)), consumer.CommitUncommittedOffsets(ctx))
	consumer.Close()
	if err != nil {
		return err
	}
	kept, err := admin.FetchOffsets(ctx, full)
	if err != nil {
		return err
	}
	one, _ := kept.Lookup(full, 0)
	if err := same(int64(10), one.At); err != nil {
		return err
	}
	listed, err := admin.ListGroups(ctx)
	if err != nil {
		return err
	}
	if _, there := listed[full]; !there {
		return errors.New("the group is not listed")
	}
	_, err = admin.DeleteGroup(ctx, full)
	return err
}

func topics(ctx context.Context) error {
	name, err := topic(ctx, "admin", 1, nil)
	if err != nil {
		return err
	}
	if _, err := topic(ctx, "admin", 1, nil); !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("made twice: %v", err)
	}
	grown, err := admin.UpdatePartitions(ctx, 3, name)
	if err != nil || grown.Error() != nil {
		return errors.Join(err, grown.Error())
	}
	if err := until(ctx, "three partitions", func() bool {
		listed, err := admin.ListTopics(ctx, name)
		return err == nil && len(listed[name].Partitions) == 3
	}); err != nil {
		return err
	}
	manual := kgo.RecordPartitioner(kgo.ManualPartitioner())
	if err := produce(ctx, records(name, texts(10, 0)), manual); err != nil {
		return err
	}
	var cut kadm.Offsets
	cut.AddOffset(name, 0, 4, -1)
	deleted, err := admin.DeleteRecords(ctx, cut)
	if err != nil || deleted.Error() != nil {
		return errors.Join(err, deleted.Error())
	}
	found, err := read(ctx, name, 6, kgo.NewOffset().AtStart())
	if err != nil {
		return err
	}
	dirs, err := admin.DescribeAllLogDirs(ctx, nil)
	if err != nil {
		return err
	}
	var size int64
	dirs.Each(func(dir kadm.DescribedLogDir) { size += dir.Size() })
	if size == 0 {
		return errors.New("the log directories hold nothing")
	}
	gone, err := admin.DeleteTopic(ctx, name)
	return errors.Join(same(texts(6, 4), values(found)), err, gone.Err)
}

func configs(ctx context.Context) error {
	retention := "60000"
	name, err := topic(ctx, "configs", 1, map[string]*string{"retention.ms": &retention})
	if err != nil {
		return err
	}
	value := func(key string) string {
		described, err := admin.DescribeTopicConfigs(ctx, name)
		if err != nil {
			return err.Error()
		}
		for _, config := range described[0].Configs {
			if config.Key == key {
				return config.MaybeValue()
			}
		}
		return "not there"
	}
	if err := same("60000", value("retention.ms")); err != nil {
		return err
	}
	next := "5000"
	altered, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &next}}, name)
	if err != nil || altered[0].Err != nil {
		return errors.Join(err, altered[0].Err)
	}
	return until(ctx, "the new value", func() bool { return value("retention.ms") == "5000" })
}

func cluster(ctx context.Context) error {
	metadata, err := admin.BrokerMetadata(ctx)
	if err != nil {
		return err
	}
	if len(metadata.Brokers) == 0 || metadata.Cluster == "" {
		return fmt.Errorf("%v", metadata)
	}
	return nil
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/twmb/franz-go" {
			return strings.TrimPrefix(module.Version, "v")
		}
	}
	return "unknown"
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "member" {
		join(context.Background(), os.Args[2], os.Args[2])
		select {}
	}
	fmt.Println("client franz-go", version())
	admin = kadm.NewClient(client())
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		check("compression", codec, compression(codec))
	}
	check("acks", "0", acks("0", kgo.NoAck()))
	check("acks", "1", acks("1", kgo.LeaderAck()))
	check("acks", "all", acks("all", kgo.AllISRAcks()))
	check("idempotence", "in order, once", idempotence)
	check("keys", "null and empty", keys)
	check("headers", "several of one name", headers)
	check("offsets", "from one, and the ends", offsets)
	check("offsets", "fetch sessions over 20 partitions", fetchSessions)
	check("timestamps", "looked up", timestamps)
	check("groups", "eager: join and leave", groupShares("eager", kgo.Balancers(kgo.RangeBalancer())))
	check("groups", "cooperative: join and leave", groupShares("cooperative", kgo.Balancers(kgo.CooperativeStickyBalancer())))
	check("groups", "crash", groupCrash)
	check("groups", "commit, fetch, list, delete", groupOffsets)
	check("topics", "create, grow, delete records, delete", topics)
	check("configs", "describe and alter", configs)
	check("cluster", "describe", cluster)
	if failed {
		os.Exit(1)
	}
}
