package node

import (
	"context"

	"mneme/internal/raftfsm"
	"mneme/internal/storage"
)

// Metrics of a shard on this node: what it holds.
var (
	ofRecords  = gaugeOf("records", "Living records.", "shard")
	ofPending  = gaugeOf("pending_vectors", "Records that wait for their vectors.", "shard")
	ofApplied  = gaugeOf("applied_sequence", "Last sequence of the log that the state holds.", "shard")
	ofHalted   = gaugeOf("shard_halted", "1 while the shard does not apply.", "shard")
	ofRefuses  = gaugeOf("writes_stopped", "1 while this node would refuse writes to the shard: for want of room, because log and state disagree, because the shard or the log's server has stopped.", "shard")
	ofFailing  = gaugeOf("backfill_failing_namespaces", "Namespaces whose embedder failed, so that their records wait for vectors.", "shard")
	ofAside    = gaugeOf("state_set_aside_timestamp_seconds", "When a node of several last set its state aside and built it again; 0 if nothing lies there.", "shard")
	ofFeedDrop = countOf("feed_dropped_total", "Events not announced live because the publisher was slow.", "shard")
)

// Metrics of its log.
var (
	ofLogUp      = gaugeOf("log_up", "1 if the log answered within two seconds.", "shard")
	ofLogFirst   = gaugeOf("log_first_sequence", "First sequence of the log.", "shard")
	ofLogLast    = gaugeOf("log_sequence", "Last sequence of the log.", "shard")
	ofLogBytes   = gaugeOf("log_bytes", "Size of the log.", "shard")
	ofLogLost    = gaugeOf("log_lost_messages", "Messages that the log's server reports lost.", "shard")
	ofCopies     = gaugeOf("log_copies", "Copies that the log's servers keep of the log.", "shard")
	ofCopiesNow  = gaugeOf("log_copies_current", "Copies of the log that are there and whole, as the server that leads it says.", "shard")
	ofCopiesWant = gaugeOf("log_copies_wanted", "Copies that the log is to have for as many nodes as have a vote; with an external NATS those that it was made with.", "shard")
	ofDiverged   = gaugeOf("log_diverged", "1 while writes are stopped because log and state disagree.", "shard")
	ofScrubbed   = gaugeOf("log_scrubbed_sequence", "How far the slow reading of the whole log is.", "shard")
	ofScrubEnd   = gaugeOf("log_scrub_finished_timestamp_seconds", "When the whole log was last read and found sound; 0 if not since the start.", "shard")
	ofScrubFound = gaugeOf("log_scrub_problem", "1 if the last reading of the whole log found damage.", "shard")
	ofVoid       = countOf("log_void_frames_total", "Messages of the log that are no frames of its writer.", "shard")
)

// Metrics of its writers; they count on this node only, over all terms.
var (
	ofLeads      = gaugeOf("shard_leader", "1 while this node leads the shard and takes its writes.", "shard")
	ofTerms      = countOf("writer_terms_total", "Terms that this node began to write in.", "shard")
	ofFrames     = countOf("frames_appended_total", "Frames appended to the log.", "shard")
	ofEvents     = countOf("events_appended_total", "Events appended to the log.", "shard")
	ofDuplicates = countOf("duplicates_total", "Captures answered as duplicates.", "shard")
	ofConflicts  = countOf("conflicts_total", "Captures answered as conflicts.", "shard")
	ofAdopted    = countOf("adopted_frames_total", "Frames adopted after unknown outcomes.", "shard")
	ofQueue      = gaugeOf("queue_items", "Events that wait for a frame.", "shard")
	ofQueueBytes = gaugeOf("queue_bytes", "Size of the events that wait for a frame.", "shard")
	ofQueueMost  = gaugeOf("queue_limit_items", "Events that may wait for a frame; more are refused as overloaded.", "shard")
)

// Metrics of its Raft group.
var (
	ofRaftTerm     = gaugeOf("raft_term", "Term of the shard's Raft group.", "shard")
	ofRaftKnown    = gaugeOf("raft_leader_known", "1 while this replica knows who leads the shard.", "shard")
	ofRaftChanges  = countOf("raft_leader_changes_total", "How often this replica heard of another leader or became the leader.", "shard")
	ofRaftContact  = gaugeOf("raft_leader_contact_timestamp_seconds", "When this replica last heard of the leader; 0 on the leader itself, and if never.", "shard")
	ofRaftVoters   = gaugeOf("raft_voters", "Replicas of the shard that vote.", "shard")
	ofRaftCommit   = gaugeOf("raft_commit_index", "Last entry of Raft's log that is agreed on, as this replica knows.", "shard")
	ofRaftApplied  = gaugeOf("raft_applied_index", "Last entry of Raft's log that this replica has applied.", "shard")
	ofRaftLast     = gaugeOf("raft_last_index", "Last entry of Raft's log.", "shard")
	ofRaftFirst    = gaugeOf("raft_first_index", "First entry of Raft's log.", "shard")
	ofRaftSnapshot = gaugeOf("raft_snapshot_index", "Last entry that the newest snapshot holds.", "shard")
	ofRaftSnaps    = gaugeOf("raft_snapshots", "Snapshots on disk.", "shard")
	ofRaftPending  = gaugeOf("raft_pending_batches", "Batches that are agreed on and wait to be applied.", "shard")
	ofRaftWrite    = gaugeOf("raft_log_write_max_seconds", "The longest write to Raft's log since the start.", "shard")
)

// Metrics of the store that holds its state.
var (
	ofStoreDisk    = gaugeOf("store_disk_bytes", "Size of the state on disk.", "shard")
	ofStoreWAL     = gaugeOf("store_wal_bytes", "Size of the state's write-ahead log.", "shard")
	ofStoreMem     = gaugeOf("store_memtable_bytes", "What of the state is in memory until it is flushed.", "shard")
	ofStoreCache   = gaugeOf("store_cache_bytes", "Size of the cache of blocks.", "shard")
	ofStoreHits    = countOf("store_cache_hits_total", "Blocks found in the cache.", "shard")
	ofStoreMisses  = countOf("store_cache_misses_total", "Blocks read because they were not in the cache.", "shard")
	ofStoreL0      = gaugeOf("store_level0_files", "Tables that are not sorted into the rest yet.", "shard")
	ofStoreAmp     = gaugeOf("store_read_amplification", "Tables that one read of a row may visit.", "shard")
	ofStoreDebt    = gaugeOf("store_compaction_debt_bytes", "What compactions have yet to do, estimated.", "shard")
	ofStoreCompact = countOf("store_compactions_total", "Compactions.", "shard")
	ofStoreFlushes = countOf("store_flushes_total", "Flushes of memory to disk.", "shard")
	ofStoreStalls  = countOf("store_write_stalls_total", "How often writes waited for flushes or compactions.", "shard")
	ofStoreStalled = countOf("store_write_stall_seconds_total", "Time in which writes waited for flushes or compactions.", "shard")
	ofStoreFaults  = countOf("store_background_faults_total", "Errors of the store's work in the background.", "shard")
)

// shardCollector reads a shard.
type shardCollector struct {
	*served
	name string
	to   readings
}

func (s shardCollector) put(f family, v float64) { s.to.put(f, v, s.name) }

func (s shardCollector) collect(ctx context.Context) {
	v := s.state.View()
	records, pending := v.Totals()
	applied := v.Cursor().Seq
	if err := v.Close(); err != nil {
		s.log.Error("view could not be closed", "err", err)
	}
	s.put(ofRecords, float64(records))
	s.put(ofPending, float64(pending))
	s.put(ofApplied, float64(applied))
	s.put(ofHalted, asFlag(s.replica.Group().Halted() != nil))
	s.put(ofRefuses, asFlag(s.refuse() != nil || s.replica.Diverged() != nil))
	s.put(ofFailing, float64(s.followers.backfill.Failing()))
	s.put(ofFeedDrop, float64(s.followers.feed.dropped.Load()))
	aside := 0.0
	if s.peers != nil {
		aside = unixSeconds(s.keepsAside())
	}
	s.put(ofAside, aside)
	s.collectLog(ctx)
	s.collectWriter()
	s.collectRaft(s.replica.Group().Stats())
	s.collectStore(s.state.Metrics())
}

func (s shardCollector) collectLog(ctx context.Context) {
	info, err := s.stream.Info(ctx)
	s.put(ofLogUp, asFlag(err == nil))
	if err == nil {
		s.put(ofLogFirst, float64(info.First))
		s.put(ofLogLast, float64(info.Last))
		s.put(ofLogBytes, float64(info.Bytes))
		s.put(ofLogLost, float64(len(info.Lost)))
		s.put(ofCopies, float64(info.Copies))
		s.put(ofCopiesNow, float64(info.Whole))
		s.put(ofCopiesWant, float64(replication{s.served}.wanted(info.Copies)))
	}
	scrub := s.scrub.Status()
	s.put(ofDiverged, asFlag(s.replica.Diverged() != nil))
	s.put(ofScrubbed, float64(scrub.Done))
	s.put(ofScrubEnd, unixSeconds(scrub.FinishedAt))
	s.put(ofScrubFound, asFlag(scrub.Problem != ""))
	s.put(ofVoid, float64(s.followers.voids.Load()))
}

func (s shardCollector) collectWriter() {
	s.put(ofTerms, float64(s.counters.Terms.Load()))
	s.put(ofFrames, float64(s.counters.Frames.Load()))
	s.put(ofEvents, float64(s.counters.Events.Load()))
	s.put(ofDuplicates, float64(s.counters.Duplicates.Load()))
	s.put(ofConflicts, float64(s.counters.Conflicts.Load()))
	s.put(ofAdopted, float64(s.counters.Adopted.Load()))
	s.put(ofLeads, asFlag(s.replica.Leads()))
	w, err := s.replica.Writer()
	if err != nil { // another node has the queue
		return
	}
	items, bytes := w.QueueDepth()
	s.put(ofQueue, float64(items))
	s.put(ofQueueBytes, float64(bytes))
	s.put(ofQueueMost, float64(s.n.front.queueLimit()))
}

func (s shardCollector) collectRaft(r raftfsm.Stats) {
	s.put(ofRaftTerm, float64(r.Term))
	s.put(ofRaftKnown, asFlag(r.LeaderID != ""))
	s.put(ofRaftChanges, float64(r.LeaderChanges))
	s.put(ofRaftContact, unixSeconds(r.LastContact))
	s.put(ofRaftVoters, float64(r.Voters))
	s.put(ofRaftCommit, float64(r.CommitIndex))
	s.put(ofRaftApplied, float64(r.AppliedIndex))
	s.put(ofRaftLast, float64(r.LastIndex))
	s.put(ofRaftFirst, float64(r.FirstIndex))
	s.put(ofRaftSnapshot, float64(r.SnapshotIndex))
	s.put(ofRaftSnaps, float64(r.Snapshots))
	s.put(ofRaftPending, float64(r.FSMPending))
	s.put(ofRaftWrite, r.StoreMax.Seconds())
}

func (s shardCollector) collectStore(m storage.Metrics) {
	s.put(ofStoreDisk, float64(m.DiskBytes))
	s.put(ofStoreWAL, float64(m.WALBytes))
	s.put(ofStoreMem, float64(m.MemTableBytes))
	s.put(ofStoreCache, float64(m.CacheBytes))
	s.put(ofStoreHits, float64(m.CacheHits))
	s.put(ofStoreMisses, float64(m.CacheMisses))
	s.put(ofStoreL0, float64(m.L0Files))
	s.put(ofStoreAmp, float64(m.ReadAmp))
	s.put(ofStoreDebt, float64(m.CompactionDebt))
	s.put(ofStoreCompact, float64(m.Compactions))
	s.put(ofStoreFlushes, float64(m.Flushes))
	s.put(ofStoreStalls, float64(m.WriteStalls))
	s.put(ofStoreStalled, m.WriteStalled.Seconds())
	s.put(ofStoreFaults, float64(m.BackgroundFault))
}
