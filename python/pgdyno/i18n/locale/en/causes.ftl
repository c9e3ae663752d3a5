# About each cause: what it is (about-NAME), how it is seen (-seen), how its cost is measured (-cost).
# The report shows these texts with a finding; the pages in docs/guide/causes are made of them.

about-autovacuum = Autovacuum workers remove dead rows and refresh statistics while the clients run. They read and write the same tables, use CPU, and write WAL.
about-autovacuum-seen = Autovacuum workers appear in pg_stat_progress_vacuum, in the server log (log_autovacuum_min_duration) or among the server's processes. Reported from 3% of the throughput with an interval above zero, or from 4% of the CPUs.
about-autovacuum-cost = The throughput of the samples with a worker is compared with that of the others in the same trial. Where workers run all the time, the cost is their share of busy CPUs.

about-bloat = Each UPDATE and DELETE leaves a dead row. If they are not removed in time, tables and indexes grow, and each statement reads more pages. An update that finds no room on its page, or changes an indexed column, is not HOT and also writes to every index.
about-bloat-seen = Throughput falls by 10% or more over a trial, and pg_stat_all_tables shows 5,000 dead rows and half as many as live ones, or fewer than half of the updates are HOT.
about-bloat-cost = Half of the fall in throughput over the trial. This is a bound by reasoning: between nothing and the whole fall.

about-buffer-misses = A page that is not in shared_buffers is copied from the kernel's page cache. No disk is involved, but each copy takes a system call and CPU time.
about-buffer-misses-seen = At least 5% of the pages that statements need are not in shared_buffers, the device is hardly read, and missing them costs 4% of the clients' time or more.
about-buffer-misses-cost = The clients' time in read waits, or the read time that track_io_timing counts; and an estimate of the CPU time for looking up, evicting and copying pages.

about-checkpoint-full-pages = After a checkpoint, the first change of a page writes the whole page (up to 8 KiB) to WAL, which protects against torn pages (full_page_writes). WAL volume jumps after each checkpoint, and then falls.
about-checkpoint-full-pages-seen = Whole pages are 10% of the WAL or more, and they cost 3% or more.
about-checkpoint-full-pages-cost = The throughput of samples with many full-page images per transaction is compared with that of the calmest quarter. Without enough calm samples, the cost is the time in WAL waits times the share of full-page images in the WAL, waits for pages of the transaction status that checkpoints write, and an estimate of the pages' CPU time.

about-checkpoint-writes = A checkpoint writes all dirty pages of shared_buffers to disk and syncs the files. Reads and WAL syncs of the clients wait behind these writes.
about-checkpoint-writes-seen = The server log or the checkpointer's activity shows when a checkpoint writes. Reported from 5% of the throughput with an interval above zero.
about-checkpoint-writes-cost = The throughput while a checkpoint writes is compared with that of the rest of the same trial.

about-client-bound = The threads that run pgdyno used a CPU, or waited for one, most of the time, and the server waited for its clients. The measured throughput is a lower bound of what the server can do. On one saturated machine client and server compete, and the limit of the server alone is not known.
about-client-bound-seen = The clients' time outside the server is 25% or more, and pgdyno's busiest thread used a CPU, or waited for one, most of the time.
about-client-bound-cost = The share of the clients' time that passes outside the server.

about-connections = More sessions are runnable than there are CPUs. They queue for a CPU, context switches and lock hold times grow, and throughput often falls below its peak.
about-connections-seen = There are at least 8 clients per core, and a backend that can run has no CPU 70% of the time.
about-connections-cost = The share of the clients' time in which backends wait for a CPU.

about-few-clients = A client runs one statement at a time. With few clients, part of the CPUs stays idle whatever the server could do: throughput is the number of clients divided by the latency.
about-few-clients-seen = In a closed loop, clients are on a CPU during 30% of their time or more, at least 15% of the CPUs are idle, and pgdyno's own threads are not the limit.
about-few-clients-cost = The share of the clients' time in which backends run.

about-cpu-quota = A control group limits the CPU time of the server (container, Kubernetes limit, systemd CPUQuota). When the quota of a period is used up, all its processes stop until the next period, although the machine has free CPUs.
about-cpu-quota-seen = The counter of throttled periods in the server's cgroup: 10% of the periods or more, and 5% of the clients' time or more.
about-cpu-quota-cost = The time in which backends run or could run, times the share of the time in which the quota has stopped them.

about-data-io = Table and index pages come from the device because neither shared_buffers nor the page cache holds them, or backends write dirty pages themselves to make room.
about-data-io-seen = Wait events of data files (DataFileRead, DataFileWrite, AioIoCompletion and others) take 10% of the clients' time or more, and the device delivers 20% of the missed bytes or more.
about-data-io-cost = The share of the clients' time in these waits.

about-foreign-command = A session that does not belong to the load runs commands beside it: VACUUM FULL, CREATE INDEX, ANALYZE, COPY, a base backup, a report. They take CPU, I/O and locks from the clients, and write WAL.
about-foreign-command-seen = pg_stat_activity shows the commands of other sessions with each look at the waits, ten times a second. Reported from 3% of the throughput with an interval above zero. Where the throughput shows nothing and the CPUs are full: from 3% of the CPUs, or from 5% of the running sessions where the CPU use of other sessions is not counted.
about-foreign-command-cost = Throughput of the samples with the command, compared with that of the others in the same trial, in proportion to the time that it ran. Where that shows nothing: the share of the CPUs that other sessions used while it ran, times the part of the time in which it ran.

about-foreign-lock = A session that does not belong to the load holds a lock (LOCK TABLE, DDL, a long transaction), and clients queue behind it.
about-foreign-lock-seen = pg_blocking_pids names the lock holder once a second while clients wait. Reported from 2% of the clients' time.
about-foreign-lock-cost = The share of the clients' time in lock waits while the holder is another session.

about-held-snapshot = An open transaction, a prepared transaction, a replication slot or a standby holds an old snapshot. VACUUM cannot remove rows that died after it, so tables grow and version chains get longer.
about-held-snapshot-seen = The oldest snapshot of other sessions is as old as half the trial or more, spans 1,000 transactions, and holds 1,000 dead rows or more.
about-held-snapshot-cost = Half of the fall in throughput over the trial. This is a bound by reasoning: between nothing and the whole fall.

about-level-change = Throughput has one level for a part of the trial and another for the rest: an index was dropped, a setting changed, a plan changed, a cache warmed up, the machine slowed down. One figure for the whole trial is neither of the two.
about-level-change-seen = A step of the throughput of 20% or more, at least 2 s from either end (docs/math.md, Levels). Definitions, settings and plans are read before and after the trial; the finding names what differs, then every recorded series that is higher at the lower level.
about-level-change-cost = The throughput missing at the lower level, compared with the higher one, over the whole trial.

about-missing-index = A statement reads a whole table by a sequential scan to find a few of its rows, because no index fits its WHERE clause.
about-missing-index-seen = The plan of the statement has a sequential scan, the table's counters show 5,000 rows or more read and thrown away per execution, and 100 or more for each row that is wanted. A table that no statement of the scripts reads, and that is scanned in one of five transactions or more, is read by a foreign key's check, a trigger or a function.
about-missing-index-cost = The statement's share of the time of a transaction. This is an upper bound: with an index the statement still takes some time.

about-network = Each statement costs one round trip between client and server. On a fast server the round trips can be most of the latency. Proxies, poolers and delayed acknowledgements add to them.
about-network-seen = An empty query takes 0.3 ms or more, and round trips are 20% of the latency or more, or messages take far longer than an empty query at its best.
about-network-cost = The least round trip of an empty query times the statements per transaction, divided by the latency.

about-idle-in-transaction = A session is idle in transaction while the server waits for the next statement of an open transaction: the application computes, calls another service, or the statement is on its way. The server could do more; meanwhile the transaction keeps its locks and its snapshot.
about-idle-in-transaction-seen = On an observed server, sessions are idle in transaction during 25% of their busy time or more. Sessions that are so for more than a second are not part of the load. Of a load that pgdyno drives, network and client are judged instead.
about-idle-in-transaction-cost = The share of the sessions' busy time in that state.

about-noisy-neighbour = Other processes, or other virtual machines on the same host (steal), use the CPUs that server and client need.
about-noisy-neighbour-seen = Steal takes 5% of the CPUs, or processes that are neither pgdyno's nor the server's use 15% of busy CPUs. The latter have low confidence where server, client and network need a CPU in less than a third of the clients' time.
about-noisy-neighbour-cost = Their share of the CPUs, sample by sample.

about-other-waits = A wait event takes much of the clients' time, and pgdyno has no rule for it.
about-other-waits-seen = The wait events that no other cause covers take 10% of the clients' time or more. Waits for the client are left out, and pg_sleep where a script itself calls it.
about-other-waits-cost = The share of the clients' time in these waits.

about-parallel-query = A parallel query starts workers for each execution and ends them again, which takes about a millisecond. Short queries spend more time on that than they save, and where other clients have all CPUs busy the workers only take their place.
about-parallel-query-seen = Waits for parallel workers (ExecuteGather, and their start and end) are 10% of the clients' time or more, and transactions are shorter than 50 ms, or the clients have all CPUs busy.
about-parallel-query-cost = Between the share of the clients' time in which workers start and end, and all time in waits for workers: what workers do the client's backend would do without them.

about-plan-changed = The planner chose another plan for a statement during the trial, usually because autovacuum refreshed the statistics of a table that grew.
about-plan-changed-seen = The generic plan of a statement differs before and after the trial. The moment of the change is not known.
about-plan-changed-cost = Half of the change in throughput over the trial, at most the statement's share of the time. This is a bound by reasoning.

about-row-locks = Two transactions that change the same row run one after the other: the second one waits until the first one commits. A few hot rows limit the whole throughput, however many clients there are.
about-row-locks-seen = Wait events Lock:transactionid and Lock:tuple take 5% of the clients' time or more and the lock holders are pgdyno's own clients, or deadlocks occur (one in 20 s or more).
about-row-locks-cost = The share of the clients' time in these waits. Where most of the lock holders wait for WAL, the WAL sync is the root: it is shown beside this cause.

about-server-cpu = The CPUs of the server's machine are busy, most of it with PostgreSQL. Every server has such a limit; it is the one to reach.
about-server-cpu-seen = The CPUs are 90% busy (or 60%, and backends wait for a CPU half of the time). Without access to the machine: 60% of the clients' time in statements without any wait event.
about-server-cpu-cost = The share of the clients' time in which backends run or wait for a CPU.

about-stalls = Throughput dropped for half a second or more and recovered. The finding names what was different meanwhile: commands of other sessions, locks, checkpoints, and every recorded series that rose.
about-stalls-seen = A dip: 0.5 s or more below 70% of the usual throughput. Reported from 3% of the throughput, unless a cause with a name of its own accounts for half of it or more.
about-stalls-cost = The transactions missing in the dips, compared with the usual level around them.

about-sync-standby = With a synchronous standby, COMMIT returns when the standby has confirmed the WAL. Each commit takes at least one round trip and, with synchronous_commit = on, a sync on the standby's disk.
about-sync-standby-seen = Wait event IPC:SyncRep takes 5% of the clients' time or more.
about-sync-standby-cost = The share of the clients' time in this wait.

about-temporary-files = A sort, hash or materialization is larger than work_mem and spills to temporary files.
about-temporary-files-seen = A transaction writes 100 kB or more to temporary files.
about-temporary-files-cost = The share of the clients' time in waits for temporary files, or of the statements whose plan spills.

about-throttled-storage = A cloud volume, an instance or a cgroup limits requests or bytes per second. At the limit, requests queue although the device itself is fast.
about-throttled-storage-seen = Requests or bytes per second stay within 6% from sample to sample while clients wait for I/O 30% of their time or more, and a request takes 4 times as long as the device reports, or its queue is full.
about-throttled-storage-cost = The share of the clients' time in I/O waits.

about-wal-flush = COMMIT returns when its WAL is on disk. One sync serves all transactions that commit at that moment (group commit), so more clients share each sync.
about-wal-flush-seen = Wait events IO:WALSync, IO:WALWrite and LWLock:WALWrite take 10% of the clients' time or more.
about-wal-flush-cost = The share of the clients' time in these waits.

about-wal-insert = A backend copies its WAL records into the WAL buffers. If the buffers are full, or many backends insert at the same time, they wait for space. The same wait occurs while new WAL files are created.
about-wal-insert-seen = Wait events LWLock:WALInsert, LWLock:WALBufMapping and IO:WALInit* take 5% of the clients' time or more.
about-wal-insert-cost = The share of the clients' time in these waits.
