// franz-go against a broker: it sends the newest versions of all clients and checks what it gets.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const limit = 25 * time.Second

var admin *kadm.Client

func main() {
	if len(os.Args) == 4 && os.Args[1] == "member" {
		member(os.Args[2], os.Args[3])
	}
	fmt.Printf("client franz-go %s\n", version("github.com/twmb/franz-go"))
	admin = kadm.NewClient(client())
	admin.SetTimeoutMillis(15000)
	producing()
	consuming()
	groups()
	topics()
	configs()
	cluster()
	if failed {
		os.Exit(1)
	}
}

func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			return dependency.Version
		}
	}
	return "?"
}

// Producing

func producing() {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	for _, name := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		check("compression", name, func(ctx context.Context) {
			topic := create(ctx, "compression-"+name, 1, nil)
			send(ctx, topic, texts(0, 500), kgo.ProducerBatchCompression(codecs[name]))
			read := readFrom(ctx, topic, 0, 0, 500)
			same(texts(0, 500), values(read))
			kinds := map[string]uint8{"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
			same(kinds[name], read[0].Attrs.CompressionType())
		})
	}
	acks := map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}
	for _, name := range []string{"0", "1", "all"} {
		check("acks", name, func(ctx context.Context) {
			topic := create(ctx, "acks-"+name, 1, nil)
			options := []kgo.Opt{kgo.RequiredAcks(acks[name])}
			if name != "all" {
				options = append(options, kgo.DisableIdempotentWrite())
			}
			send(ctx, topic, texts(0, 300), options...)
			same(texts(0, 300), values(readFrom(ctx, topic, 0, 0, 300)))
		})
	}
	check("acks", "record at and over the limit", func(ctx context.Context) {
		topic := create(ctx, "large", 1, nil)
		big := random(999_000)
		send(ctx, topic, []string{big})
		same([]string{big}, values(readFrom(ctx, topic, 0, 0, 1)))
		producer := client(kgo.ProducerBatchMaxBytes(9_000_000), kgo.BrokerMaxWriteBytes(10_000_000), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		defer producer.Close()
		err := producer.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(random(2_000_000))}).FirstErr()
		require(errors.Is(err, kerr.MessageTooLarge), err)
		same(int64(1), end(ctx, topic, 0))
	})
	check("idempotence", "the default, in many batches", func(ctx context.Context) {
		topic := create(ctx, "idempotence", 1, nil)
		acked := send(ctx, topic, texts(0, 2000), kgo.ProducerBatchMaxBytes(600))
		for i, record := range acked {
			same(int64(i), record.Offset)
		}
		same(texts(0, 2000), values(readFrom(ctx, topic, 0, 0, 2000)))
		var set kadm.TopicsSet
		set.Add(topic, 0)
		seen := must1(admin.DescribeProducers(ctx, set))[topic].Partitions[0].ActiveProducers
		same(1, len(seen))
		for _, one := range seen {
			same(int32(1999), one.LastSequence)
			same(int64(-1), one.CurrentTxnStartOffset)
		}
	})
	check("keys", "null, empty, tombstone", func(ctx context.Context) {
		topic := create(ctx, "keys", 1, nil)
		producer := client()
		defer producer.Close()
		for _, key := range [][]byte{[]byte("k"), {}, nil} {
			for _, value := range [][]byte{[]byte("v"), {}, nil} {
				must(producer.ProduceSync(ctx, &kgo.Record{Topic: topic, Key: key, Value: value}).FirstErr())
			}
		}
		read := readFrom(ctx, topic, 0, 0, 9)
		for i, record := range read {
			key, value := [][]byte{[]byte("k"), {}, nil}[i/3], [][]byte{[]byte("v"), {}, nil}[i%3]
			require(bytes.Equal(key, record.Key) && (key == nil) == (record.Key == nil), record)
			require(bytes.Equal(value, record.Value) && (value == nil) == (record.Value == nil), record)
		}
	})
	check("keys", "partitioner", func(ctx context.Context) {
		topic := create(ctx, "partitioner", 5, nil)
		producer := client()
		defer producer.Close()
		places := map[string]int32{}
		for round := range 2 {
			for _, key := range []string{"alpha", "beta", "gamma", "delta"} {
				record := &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte("v")}
				must(producer.ProduceSync(ctx, record).FirstErr())
				if round == 1 {
					same(places[key], record.Partition)
				}
				places[key] = record.Partition
			}
		}
	})
	check("headers", "repeated, empty, null, binary", func(ctx context.Context) {
		topic := create(ctx, "headers", 1, nil)
		every := make([]byte, 256)
		for i := range every {
			every[i] = byte(i)
		}
		sent := []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b", Value: []byte{}}, {Key: "a", Value: []byte("2")},
			{Key: "none"}, {Key: "\u00fc", Value: every}}
		producer := client()
		defer producer.Close()
		must(producer.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("v"), Headers: sent}).FirstErr())
		same(sent, readFrom(ctx, topic, 0, 0, 1)[0].Headers)
	})
}

// Consuming without a group

func consuming() {
	check("offsets", "start, absolute, relative, end", func(ctx context.Context) {
		topic := create(ctx, "offsets", 2, nil)
		send(ctx, topic, texts(0, 100))
		same(int64(100), end(ctx, topic, 0))
		same(int64(0), end(ctx, topic, 1))
		same(texts(60, 40), values(readFrom(ctx, topic, 0, 60, 40)))
		consumer := client(kgo.ConsumePartitions(at(topic, 0, kgo.NewOffset().AtEnd().Relative(-10))))
		same(texts(90, 10), values(take(ctx, consumer, 10)))
		consumer.SetOffsets(map[string]map[int32]kgo.EpochOffset{topic: {0: {Epoch: -1, Offset: 7}}})
		same(texts(7, 93), values(take(ctx, consumer, 93)))
		consumer.Close()
	})
	check("offsets", "out of range", func(ctx context.Context) {
		topic := create(ctx, "range", 1, nil)
		send(ctx, topic, texts(0, 10))
		consumer := client(kgo.ConsumePartitions(at(topic, 0, kgo.NewOffset().At(500))), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		defer consumer.Close()
		same(texts(0, 10), values(take(ctx, consumer, 10)))
		strict := client(kgo.ConsumePartitions(at(topic, 0, kgo.NewOffset().At(500))), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
		defer strict.Close()
		until(limit, func() bool {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			for _, wrong := range strict.PollFetches(short).Errors() {
				if errors.Is(wrong.Err, kerr.OffsetOutOfRange) {
					return true
				}
			}
			return false
		})
	})
	check("offsets", "a record larger than the consumer's limits", func(ctx context.Context) {
		topic := create(ctx, "narrow", 1, nil)
		sent := []string{random(500_000), random(500_000)}
		send(ctx, topic, sent[:1])
		send(ctx, topic, sent[1:])
		consumer := client(kgo.ConsumePartitions(at(topic, 0, kgo.NewOffset().AtStart())), kgo.FetchMaxPartitionBytes(1000), kgo.FetchMaxBytes(1000))
		defer consumer.Close()
		same(sent, values(take(ctx, consumer, 2)))
	})
	check("offsets", "offset for leader epoch", func(ctx context.Context) {
		topic := run + "-idempotence"
		detail := must1(admin.ListTopics(ctx, topic))[topic]
		epoch := detail.Partitions[0].LeaderEpoch
		ask := kadm.OffsetForLeaderEpochRequest{}
		ask.Add(topic, 0, epoch)
		seen := must1(admin.OffsetForLeaderEpoch(ctx, ask))[topic][0]
		must(seen.Err)
		same([]int64{int64(epoch), 2000}, []int64{int64(seen.LeaderEpoch), seen.EndOffset})
		// An epoch that was never: the client must not conclude that data was lost.
		ask.Add(topic, 0, epoch+5)
		seen = must1(admin.OffsetForLeaderEpoch(ctx, ask))[topic][0]
		require(seen.Err != nil || seen.LeaderEpoch == -1 && seen.EndOffset == -1, seen)
	})
	check("offsets", "Admin lists", func(ctx context.Context) {
		topic := create(ctx, "listed", 1, nil)
		for _, stamp := range []int64{5000, 9000, 7000} {
			sendAt(ctx, topic, stamp)
		}
		offset := func(seen kadm.ListedOffsets, err error) int64 {
			must(err)
			one, _ := seen.Lookup(topic, 0)
			must(one.Err)
			return one.Offset
		}
		same(int64(0), offset(admin.ListStartOffsets(ctx, topic)))
		same(int64(3), offset(admin.ListEndOffsets(ctx, topic)))
		same(int64(3), offset(admin.ListCommittedOffsets(ctx, topic)))
		same(int64(1), offset(admin.ListMaxTimestampOffsets(ctx, topic)))
		same(int64(1), offset(admin.ListOffsetsAfterMilli(ctx, 6000, topic)))
	})
	check("offsets", "a fetch session over 20 partitions", func(ctx context.Context) {
		topic := create(ctx, "sessions", 20, nil)
		consumer := client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		defer consumer.Close()
		seen := map[string]int{}
		for round := range 10 {
			for partition := int32(0); partition < 20; partition += 3 {
				sendTo(ctx, topic, partition, []string{fmt.Sprintf("%d/%d", round, partition)})
			}
			for len(seen) < (round+1)*7 {
				fetches := consumer.PollFetches(ctx)
				must(fetches.Err())
				fetches.EachRecord(func(record *kgo.Record) { seen[string(record.Value)]++ })
			}
		}
		for value, times := range seen {
			require(times == 1, value)
		}
	})
	check("timestamps", "create time, after a time", func(ctx context.Context) {
		topic := create(ctx, "timestamps", 1, nil)
		for _, stamp := range []int64{2000, 4000, 6000, 8000} {
			sendAt(ctx, topic, stamp)
		}
		for i, record := range readFrom(ctx, topic, 0, 0, 4) {
			same(int64(2000*(i+1)), record.Timestamp.UnixMilli())
			same(int8(0), record.Attrs.TimestampType())
		}
		consumer := client(kgo.ConsumePartitions(at(topic, 0, kgo.NewOffset().AfterMilli(5000))))
		defer consumer.Close()
		same(int64(2), take(ctx, consumer, 1)[0].Offset)
	})
	check("timestamps", "LogAppendTime", func(ctx context.Context) {
		kind := "LogAppendTime"
		topic := create(ctx, "logappend", 1, map[string]*string{"message.timestamp.type": &kind})
		sendAt(ctx, topic, 1)
		record := readFrom(ctx, topic, 0, 0, 1)[0]
		same(int8(1), record.Attrs.TimestampType())
		require(time.Since(record.Timestamp).Abs() < time.Minute, record.Timestamp)
	})
}

// Groups

// owner is a consumer that polls by itself and knows what it owns.
type owner struct {
	client   *kgo.Client
	mutex    sync.Mutex
	owned    map[int32]bool
	read     []string
	assigned int
	stop     context.CancelFunc
	done     chan struct{}
}

func newOwner(topic, group string, options ...kgo.Opt) *owner {
	one := &owner{owned: map[int32]bool{}, done: make(chan struct{})}
	change := func(gained bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			one.mutex.Lock()
			defer one.mutex.Unlock()
			if gained {
				one.assigned++
			}
			for _, partition := range partitions[topic] {
				if gained {
					one.owned[partition] = true
				} else {
					delete(one.owned, partition)
				}
			}
		}
	}
	lost := change(false)
	options = append([]kgo.Opt{kgo.ConsumerGroup(run + "-g-" + group), kgo.ConsumeTopics(topic),
		kgo.SessionTimeout(6 * time.Second), kgo.HeartbeatInterval(300 * time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.OnPartitionsAssigned(change(true)),
		kgo.OnPartitionsRevoked(func(ctx context.Context, cl *kgo.Client, partitions map[string][]int32) {
			_ = cl.CommitUncommittedOffsets(ctx)
			lost(ctx, cl, partitions)
		}), kgo.OnPartitionsLost(lost)}, options...)
	one.client = client(options...)
	ctx, stop := context.WithCancel(context.Background())
	one.stop = stop
	go func() {
		defer close(one.done)
		for ctx.Err() == nil {
			fetches := one.client.PollFetches(ctx)
			one.mutex.Lock()
			fetches.EachRecord(func(record *kgo.Record) { one.read = append(one.read, string(record.Value)) })
			one.mutex.Unlock()
		}
	}()
	return one
}

func (one *owner) close() {
	one.stop()
	<-one.done
	one.client.Close()
}

func (one *owner) seen() []string {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	return slices.Clone(one.read)
}

func balanced(each int, owners ...*owner) {
	until(limit, func() bool {
		all := map[int32]bool{}
		for _, one := range owners {
			one.mutex.Lock()
			mine := len(one.owned)
			for partition := range one.owned {
				all[partition] = true
			}
			one.mutex.Unlock()
			if mine != each {
				return false
			}
		}
		return len(all) == each*len(owners)
	})
}

func groups() {
	for name, balancer := range map[string]kgo.GroupBalancer{"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(),
		"sticky": kgo.StickyBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer()} {
		check("groups", "join, leave, commit ("+name+")", func(ctx context.Context) {
			topic := create(ctx, "group-"+name, 4, nil)
			first := newOwner(topic, name, kgo.Balancers(balancer))
			balanced(4, first)
			second := newOwner(topic, name, kgo.Balancers(balancer))
			defer second.close()
			balanced(2, first, second)
			for partition := range 4 {
				sendTo(ctx, topic, int32(partition), texts(partition*50, 50))
			}
			until(limit, func() bool { return len(first.seen())+len(second.seen()) == 200 })
			all := append(first.seen(), second.seen()...)
			sort.Strings(all)
			want := texts(0, 200)
			sort.Strings(want)
			same(want, all)
			same(100, len(first.seen()))
			first.close()
			balanced(4, second)
			sendTo(ctx, topic, 0, []string{"after"})
			until(limit, func() bool { return slices.Contains(second.seen(), "after") })
			// The one that left had committed, so nothing comes twice.
			same(101, len(second.seen()))
		})
	}
	check("groups", "crash", func(ctx context.Context) {
		topic := create(ctx, "crash", 4, nil)
		ours := newOwner(topic, "crash", kgo.Balancers(kgo.RangeBalancer()))
		defer ours.close()
		balanced(4, ours)
		other := exec.Command(os.Args[0], "member", topic, run+"-g-crash")
		must(other.Start())
		defer other.Wait()
		defer other.Process.Kill()
		balanced(2, ours)
		must(other.Process.Kill())
		balanced(4, ours)
	})
	check("groups", "static member", func(ctx context.Context) {
		topic := create(ctx, "static", 4, nil)
		long := kgo.SessionTimeout(30 * time.Second)
		first := newOwner(topic, "static", kgo.Balancers(kgo.RangeBalancer()), kgo.InstanceID("one"), long)
		defer first.close()
		second := newOwner(topic, "static", kgo.Balancers(kgo.RangeBalancer()), kgo.InstanceID("two"), long)
		balanced(2, first, second)
		before := first.assigned
		second.close()
		second = newOwner(topic, "static", kgo.Balancers(kgo.RangeBalancer()), kgo.InstanceID("two"), long)
		defer second.close()
		balanced(2, first, second)
		same(before, first.assigned)
		group := run + "-g-static"
		members := must1(admin.DescribeGroups(ctx, group))[group].Members
		same([]string{"one", "two"}, []string{*members[0].InstanceID, *members[1].InstanceID})
	})
	check("groups", "commits and their metadata", func(ctx context.Context) {
		topic := create(ctx, "commits", 2, nil)
		group := run + "-g-commits"
		var offsets kadm.Offsets
		offsets.Add(kadm.Offset{Topic: topic, Partition: 0, At: 42, LeaderEpoch: 0, Metadata: "a note"})
		must(admin.CommitAllOffsets(ctx, group, offsets))
		seen, found := must1(admin.FetchOffsets(ctx, group)).Lookup(topic, 0)
		require(found, "no offset")
		same([]any{int64(42), int32(0), "a note"}, []any{seen.At, seen.LeaderEpoch, seen.Metadata})
		_, found = must1(admin.FetchOffsets(ctx, group)).Lookup(topic, 1)
		require(!found, "an offset that was never committed")
		// One row that is wrong does not keep the others out.
		offsets = kadm.Offsets{}
		offsets.AddOffset(topic, 1, 7, -1)
		offsets.AddOffset(topic, 9, 7, -1)
		both := must1(admin.CommitOffsets(ctx, group, offsets))
		good, _ := both.Lookup(topic, 1)
		must(good.Err)
		bad, _ := both.Lookup(topic, 9)
		require(errors.Is(bad.Err, kerr.UnknownTopicOrPartition), bad.Err)
	})
	check("groups", "administration", func(ctx context.Context) {
		topic := create(ctx, "administered", 2, nil)
		group := run + "-g-administered"
		sendTo(ctx, topic, 0, texts(0, 10))
		one := newOwner(topic, "administered", kgo.ClientID("the-member"), kgo.Balancers(kgo.RangeBalancer()))
		until(limit, func() bool { return len(one.seen()) == 10 })
		seen := must1(admin.DescribeGroups(ctx, group))[group]
		same([]string{"Stable", "consumer", "range", "the-member"}, []string{seen.State, seen.ProtocolType, seen.Protocol, seen.Members[0].ClientID})
		listed := must1(admin.ListGroups(ctx, "Stable"))
		require(slices.Contains(listed.Groups(), group), listed)
		refusal := must1(admin.DeleteGroups(ctx, group))[group].Err
		require(errors.Is(refusal, kerr.NonEmptyGroup), refusal)
		one.close()
		settle(func() { same("Empty", must1(admin.DescribeGroups(ctx, group))[group].State) })
		committed, _ := must1(admin.FetchOffsets(ctx, group)).Lookup(topic, 0)
		same(int64(10), committed.At)
		same(int64(0), must1(admin.Lag(ctx, group))[group].Lag.Total())
		var set kadm.TopicsSet
		set.Add(topic, 0)
		must(must1(admin.DeleteOffsets(ctx, group, set))[topic][0])
		var again kadm.Offsets
		again.AddOffset(topic, 0, 3, -1)
		must(admin.CommitAllOffsets(ctx, group, again))
		must(must1(admin.DeleteGroup(ctx, group)).Err)
		require(!slices.Contains(must1(admin.ListGroups(ctx)).Groups(), group), "still listed")
	})
	check("groups", "remove a static member", func(ctx context.Context) {
		topic := create(ctx, "removed", 1, nil)
		group := run + "-g-removed"
		one := newOwner(topic, "removed", kgo.InstanceID("one"), kgo.SessionTimeout(30*time.Second))
		balanced(1, one)
		one.close()
		same(1, len(must1(admin.DescribeGroups(ctx, group))[group].Members))
		for _, left := range must1(admin.LeaveGroup(ctx, kadm.LeaveGroup(group).InstanceIDs("one"))) {
			must(left.Err)
		}
		settle(func() { same(0, len(must1(admin.DescribeGroups(ctx, group))[group].Members)) })
	})
}

func member(topic, group string) {
	consumer := client(kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.SessionTimeout(6*time.Second),
		kgo.Balancers(kgo.RangeBalancer()))
	for {
		consumer.PollFetches(context.Background())
	}
}

// Administration

func topics() {
	check("topics", "create, describe, refuse", func(ctx context.Context) {
		retention := "86400000"
		topic := create(ctx, "created", 3, map[string]*string{"retention.ms": &retention})
		detail := must1(admin.ListTopics(ctx, topic))[topic]
		same(3, len(detail.Partitions))
		require(detail.ID != kadm.TopicID{}, detail.ID)
		same(1, len(detail.Partitions[2].ISR))
		refuse := func(want error, partitions int32, factor int16, configs map[string]*string, name string) {
			_, err := admin.CreateTopic(ctx, partitions, factor, configs, name)
			require(errors.Is(err, want), err)
		}
		wrong := "x"
		refuse(kerr.TopicAlreadyExists, 1, 1, nil, topic)
		refuse(kerr.InvalidTopicException, 1, 1, nil, topic+" x")
		refuse(kerr.InvalidReplicationFactor, 1, 9, nil, topic+"-rf")
		refuse(kerr.InvalidPartitions, 0, 1, nil, topic+"-np")
		refuse(kerr.InvalidConfig, 1, 1, map[string]*string{"retention.ms": &wrong}, topic+"-cfg")
	})
	check("topics", "validate only", func(ctx context.Context) {
		name := run + "-dry"
		must(must1(admin.ValidateCreateTopics(ctx, 3, 1, nil, name))[name].Err)
		require(!must1(admin.ListTopics(ctx)).Has(name), "it was created")
	})
	check("topics", "create partitions", func(ctx context.Context) {
		topic := create(ctx, "grown", 1, nil)
		must(must1(admin.UpdatePartitions(ctx, 4, topic))[topic].Err)
		settle(func() { same(4, len(must1(admin.ListTopics(ctx, topic))[topic].Partitions)) })
		refusal := must1(admin.UpdatePartitions(ctx, 2, topic))[topic].Err
		require(errors.Is(refusal, kerr.InvalidPartitions), refusal)
		sendTo(ctx, topic, 3, []string{"v"})
		same([]string{"v"}, values(readFrom(ctx, topic, 3, 0, 1)))
	})
	check("topics", "delete and create again under a reader", func(ctx context.Context) {
		topic := create(ctx, "again", 1, nil)
		before := must1(admin.ListTopics(ctx, topic))[topic].ID
		send(ctx, topic, texts(0, 5))
		must(must1(admin.DeleteTopic(ctx, topic)).Err)
		settle(func() { require(!must1(admin.ListTopics(ctx)).Has(topic), "still listed") })
		_, err := admin.DeleteTopic(ctx, topic)
		require(errors.Is(err, kerr.UnknownTopicOrPartition), err)
		create(ctx, "again", 1, nil)
		// This client keeps metadata for a moment.
		settle(func() { require(must1(admin.ListTopics(ctx, topic))[topic].ID != before, "the same id") })
		same(int64(0), end(ctx, topic, 0))
		send(ctx, topic, []string{"new"})
		same([]string{"new"}, values(readFrom(ctx, topic, 0, 0, 1)))
	})
	check("topics", "auto creation only where asked for", func(ctx context.Context) {
		name := run + "-auto"
		asking := client(kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(20))
		defer asking.Close()
		must(asking.ProduceSync(ctx, &kgo.Record{Topic: name, Value: []byte("v")}).FirstErr())
		same(int64(1), end(ctx, name, 0))
		silent := client(kgo.UnknownTopicRetries(1))
		defer silent.Close()
		err := silent.ProduceSync(ctx, &kgo.Record{Topic: name + "-no", Value: []byte("v")}).FirstErr()
		require(errors.Is(err, kerr.UnknownTopicOrPartition), err)
		require(!must1(admin.ListTopics(ctx)).Has(name+"-no"), "it was created")
	})
	check("topics", "delete records", func(ctx context.Context) {
		topic := create(ctx, "trimmed", 1, nil)
		send(ctx, topic, texts(0, 20))
		var offsets kadm.Offsets
		offsets.AddOffset(topic, 0, 8, -1)
		seen := must1(admin.DeleteRecords(ctx, offsets))[topic][0]
		must(seen.Err)
		same(int64(8), seen.LowWatermark)
		same(texts(8, 12), values(readFrom(ctx, topic, 0, 8, 12)))
		offsets.AddOffset(topic, 0, 99, -1)
		refusal := must1(admin.DeleteRecords(ctx, offsets))[topic][0].Err
		require(errors.Is(refusal, kerr.OffsetOutOfRange), refusal)
	})
}

func configs() {
	check("configs", "topic", func(ctx context.Context) {
		retention, wrong := "86400000", "x"
		topic := create(ctx, "configs", 1, map[string]*string{"retention.ms": &retention})
		seen := func() map[string]kadm.Config {
			found := map[string]kadm.Config{}
			one := must1(must1(admin.DescribeTopicConfigs(ctx, topic)).On(topic, nil))
			must(one.Err)
			for _, config := range one.Configs {
				found[config.Key] = config
			}
			return found
		}
		all := seen()
		require(len(all) >= 25, len(all))
		require(all["retention.ms"].Source == kmsg.ConfigSourceDynamicTopicConfig, all["retention.ms"])
		require(all["cleanup.policy"].Source == kmsg.ConfigSourceDefaultConfig, all["cleanup.policy"])
		alter := func(op kadm.IncrementalOp, key string, value *string) error {
			return must1(must1(admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: op, Name: key, Value: value}}, topic)).On(topic, nil)).Err
		}
		compact := "compact"
		must(alter(kadm.AppendConfig, "cleanup.policy", &compact))
		must(alter(kadm.DeleteConfig, "retention.ms", nil))
		settle(func() {
			now := seen()
			policy, kept := now["cleanup.policy"], now["retention.ms"]
			same([]string{"delete,compact", "604800000"}, []string{policy.MaybeValue(), kept.MaybeValue()})
		})
		refusal := alter(kadm.SetConfig, "retention.ms", &wrong)
		require(errors.Is(refusal, kerr.InvalidConfig), refusal)
	})
	check("configs", "broker", func(ctx context.Context) {
		node := must1(admin.ListBrokers(ctx))[0].NodeID
		value := "14300"
		set := func(op kadm.IncrementalOp, value *string) {
			for _, one := range must1(admin.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Op: op, Name: "log.cleaner.backoff.ms", Value: value}}, node)) {
				must(one.Err)
			}
		}
		seen := func() string {
			for _, one := range must1(admin.DescribeBrokerConfigs(ctx, node)) {
				for _, config := range one.Configs {
					if config.Key == "log.cleaner.backoff.ms" {
						return config.MaybeValue()
					}
				}
			}
			return ""
		}
		set(kadm.SetConfig, &value)
		settle(func() { same(value, seen()) })
		set(kadm.DeleteConfig, nil)
		settle(func() { require(seen() != value, seen()) })
	})
}

func cluster() {
	check("cluster", "metadata, versions", func(ctx context.Context) {
		seen := must1(admin.BrokerMetadata(ctx))
		require(seen.Cluster != "" && len(seen.Brokers) > 0, seen)
		require(slices.Contains(seen.Brokers.NodeIDs(), seen.Controller), seen.Controller)
		versions := must1(admin.ApiVersions(ctx))
		for _, one := range versions {
			must(one.Err)
			_, most, found := one.KeyVersions(0)
			require(found && most >= 12, most)
		}
	})
	check("cluster", "log directories", func(ctx context.Context) {
		topic := create(ctx, "sized", 1, nil)
		send(ctx, topic, []string{random(100_000)})
		var set kadm.TopicsSet
		set.Add(topic, 0)
		var sizes []int64
		must1(admin.DescribeAllLogDirs(ctx, set)).Each(func(directory kadm.DescribedLogDir) {
			must(directory.Err)
			directory.Topics.Each(func(partition kadm.DescribedLogDirPartition) { sizes = append(sizes, partition.Size) })
		})
		require(len(sizes) == 1 && sizes[0] > 100_000 && sizes[0] < 110_000, sizes)
	})
	check("cluster", "elections and reassignments", func(ctx context.Context) {
		topic := create(ctx, "elected", 1, nil)
		var set kadm.TopicsSet
		set.Add(topic, 0)
		seen := must1(admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, set))[topic][0]
		require(errors.Is(seen.Err, kerr.ElectionNotNeeded), seen.Err)
		same(0, len(must1(admin.ListPartitionReassignments(ctx, nil))))
		var away kadm.AlterPartitionAssignmentsReq
		away.Assign(topic, 0, []int32{77})
		refusal := must1(admin.AlterPartitionAssignments(ctx, away))[topic][0].Err
		require(errors.Is(refusal, kerr.InvalidReplicaAssignment), refusal)
	})
}

// Shared

func client(options ...kgo.Opt) *kgo.Client {
	return must1(kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(bootstrap), kgo.MetadataMinAge(100 * time.Millisecond)}, options...)...))
}

// create makes a topic and waits until every partition answers.
func create(ctx context.Context, name string, partitions int32, configs map[string]*string) string {
	name = run + "-" + name
	until(limit, func() bool {
		_, err := admin.CreateTopic(ctx, partitions, 1, configs, name)
		// A name that was deleted may be taken for a moment longer.
		if errors.Is(err, kerr.TopicAlreadyExists) {
			return false
		}
		must(err)
		return true
	})
	until(limit, func() bool {
		seen, err := admin.ListEndOffsets(ctx, name)
		if err != nil || seen.Error() != nil {
			return false
		}
		count := 0
		seen.Each(func(one kadm.ListedOffset) {
			if one.Offset == 0 {
				count++
			}
		})
		return count == int(partitions)
	})
	return name
}

func end(ctx context.Context, topic string, partition int32) int64 {
	one, _ := must1(admin.ListEndOffsets(ctx, topic)).Lookup(topic, partition)
	must(one.Err)
	return one.Offset
}

func send(ctx context.Context, topic string, values []string, options ...kgo.Opt) []*kgo.Record {
	return sendTo(ctx, topic, 0, values, options...)
}

func sendTo(ctx context.Context, topic string, partition int32, values []string, options ...kgo.Opt) []*kgo.Record {
	producer := client(append([]kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner())}, options...)...)
	defer producer.Close()
	var records []*kgo.Record
	for _, value := range values {
		records = append(records, &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)})
	}
	must(producer.ProduceSync(ctx, records...).FirstErr())
	return records
}

func sendAt(ctx context.Context, topic string, millis int64) *kgo.Record {
	producer := client()
	defer producer.Close()
	record := &kgo.Record{Topic: topic, Value: []byte("v"), Timestamp: time.UnixMilli(millis)}
	must(producer.ProduceSync(ctx, record).FirstErr())
	return record
}

func at(topic string, partition int32, offset kgo.Offset) map[string]map[int32]kgo.Offset {
	return map[string]map[int32]kgo.Offset{topic: {partition: offset}}
}

func take(ctx context.Context, consumer *kgo.Client, count int) []*kgo.Record {
	var found []*kgo.Record
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for len(found) < count {
		fetches := consumer.PollFetches(ctx)
		if ctx.Err() != nil {
			panic(fmt.Sprintf("%d of %d records came", len(found), count))
		}
		must(fetches.Err())
		found = append(found, fetches.Records()...)
	}
	return found
}

func readFrom(ctx context.Context, topic string, partition int32, offset int64, count int) []*kgo.Record {
	consumer := client(kgo.ConsumePartitions(at(topic, partition, kgo.NewOffset().At(offset))))
	defer consumer.Close()
	found := take(ctx, consumer, count)
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	require(consumer.PollFetches(short).NumRecords() == 0 && len(found) == count, "more records than were sent")
	return found
}

func values(records []*kgo.Record) []string {
	var all []string
	for _, record := range records {
		all = append(all, string(record.Value))
	}
	return all
}

func texts(first, count int) []string {
	var all []string
	for i := first; i < first+count; i++ {
		all = append(all, fmt.Sprintf("record %d of some text, of some text, of some text", i))
	}
	return all
}

func random(size int) string {
	raw := make([]byte, size)
	rand.Read(raw)
	return string(raw)
}
