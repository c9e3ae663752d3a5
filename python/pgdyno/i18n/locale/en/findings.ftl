# Findings: a sentence and a remedy for each cause. { $name } stands for an argument.

autovacuum = Autovacuum{ $tables } takes { $share } of the throughput{ $seen }.
autovacuum-tables = { " " }({ $names })
autovacuum-runs = : { $runs } runs were logged
autovacuum-cpu = : its workers use { $cpu } of a CPU and move { $moved }
autovacuum-runs-cpu = : { $runs } runs were logged, its workers use { $cpu } of a CPU and move { $moved }
autovacuum-remedy = Increase autovacuum_vacuum_cost_delay or decrease autovacuum_vacuum_cost_limit; adjust autovacuum_naptime and the scale factors of the table; use a lower fillfactor, so that updates stay HOT.

bloat-fills = Throughput falls by { $drop } over a trial while { $table } fills with dead rows: { $dead } for each live one at the end, and { $hot } of its updates are HOT.
bloat-not-hot = Throughput falls by { $drop } over a trial while { $table } is updated off its pages: { $hot } of its updates are HOT ({ $dead } dead rows for each live one).
bloat-dead = Throughput falls by { $drop } over a trial while { $table } fills with dead rows: { $dead } for each live one at the end.
bloat-remedy = Let autovacuum keep up (increase autovacuum_vacuum_cost_limit); set fillfactor = 80 on that table; drop indexes on columns that change.
bloat-catalog-remedy = Tables and other objects are created and dropped all the time: create temporary tables once a session (ON COMMIT DELETE ROWS), and let autovacuum keep up.

buffer-misses = { $misses } of the pages were not in shared buffers{ $of }, and missing them costs { $share } of the clients' time; { $source }.
buffer-misses-cache = they came from the kernel's page cache
buffer-misses-unknown = their source cannot be seen
buffer-misses-remedy = Increase shared_buffers: it is { $buffers }, the data are { $data }, of which { $hot } of the rows are used; the memory is { $memory }.
mostly-of = { " " }({ $share } of them of { $name })

full-pages = Full-page images after checkpoints cost { $share } of { $whole }: { $wal_share } of the WAL is pages written whole at their first change after { $after } ({ $wal } of WAL per transaction{ $by }).
full-pages-frequent = Frequent checkpoints cost about { $share } of { $whole } by full-page images in WAL and by waits for pages that they write: { $wal_share } of the WAL is pages written whole at their first change after { $after } ({ $wal } of WAL per transaction{ $by }).
full-pages-waits = Full-page images in WAL take about { $share } of { $whole } in waits for WAL: { $wal_share } of the WAL is pages written whole at their first change after { $after } ({ $wal } of WAL per transaction{ $by }).
full-pages-by = ; { $share } of the full-page images by: { $statement }
full-pages-each = each of { $n } checkpoints
full-pages-earlier = a checkpoint before the measurement
full-pages-remedy = Run fewer checkpoints: increase max_wal_size (now { $size }) and checkpoint_timeout ({ $timeout }); set wal_compression = lz4 (PostgreSQL 14: on). The price: more space in pg_wal, and a longer recovery after a crash.

checkpoint-writes = Throughput is lower while checkpoints write: { $share } of it is lost; the checkpointer writes { $written } on average.
checkpoint-writes-remedy = Set checkpoint_completion_target = 0.9 (now { $target }); increase checkpoint_timeout and max_wal_size; put pg_wal on its own device; decrease vm.dirty_background_bytes.

client-bound = pgdyno's client is busy: its busiest thread was on a CPU { $cpu } of the time, and its most delayed one waited for a CPU { $delay }; the server waited for its clients during { $outside } of their time.
client-shares-cpus = pgdyno's client shares the saturated CPUs: its busiest thread was on a CPU { $cpu } of the time, and its most delayed one waited for a CPU { $delay }; the server waited for its clients during { $outside } of their time.
client-bound-remedy = Run pgdyno on its own machine; if CPUs are free, use more workers (--workers).

connections = Too many connections: { $clients } clients on { $cores } cores waited for a CPU during { $share } of their time; for { $queueing } of the time in which they could run, backends waited for a CPU.
connections-remedy = Reduce the number of clients, or put a pooler in front of the server. pgdyno scaling estimates the best number.

cpu-quota = A limit of { $allowed } CPUs throttles the server in { $periods } of its periods: statements wait for a CPU during { $share } of the clients' time, while the machine is { $busy } busy.
cpu-quota-remedy = Raise or remove the limit: cpu.max of the cgroup (Kubernetes: resources.limits.cpu; systemd: CPUQuota). Else use fewer connections at a time, because all of them share one quota.

data-io = Reading and writing table pages takes { $share } of the clients' time; a transaction misses { $missed } pages{ $of }{ $device }.
data-io-device = ; { $device } does { $requests } requests/s at { $utilisation } utilisation, a read takes { $read }
data-io-remedy = Provide more memory for the cache (shared_buffers is { $buffers }, the memory is { $memory }, the data are { $data }); use a faster device or a smaller hot set.

foreign-command = Another session ran { $command } ({ $seconds } of it were seen{ $moved }{ $others }): { $share } of the throughput is lost.
foreign-command-also = ; also { $commands }
foreign-command-others = { $n } other commands
foreign-command-others-one = { $n } other command
foreign-command-moved = { $read }{ $written }{ $wal }
foreign-command-read = , { $bytes } read
foreign-command-written = , { $bytes } written
foreign-command-wal = , { $bytes } of WAL
foreign-command-concurrent = Another session ran { $command } ({ $seconds } of it were seen{ $moved }{ $others }) and used { $share } of the CPUs. A trial without it would show the cost.
foreign-command-remedy = Run it while the load is low. Use plain VACUUM or pg_repack instead of VACUUM FULL and CLUSTER, CREATE INDEX CONCURRENTLY instead of CREATE INDEX, and pg_basebackup --max-rate for base backups.

foreign-lock = Another session ({ $session }, { $state }: { $statement }) holds a lock on { $relation } that clients wait for: { $share } of their time.
foreign-lock-remedy = End the transaction of that session; set lock_timeout for maintenance, and idle_in_transaction_session_timeout for the rest.
session-unnamed = unnamed
session-active = active
statement-none = no statement

held-snapshot = A transaction of another session has been open for { $age } and { $transactions } other transactions: up to { $dead } dead rows cannot be removed; throughput fell by { $drop } over a trial.
held-snapshot-remedy = End that transaction (a prepared one: ROLLBACK PREPARED); set idle_in_transaction_session_timeout; hot_standby_feedback and replication slots hold dead rows, too.
held-snapshot-slot = A replication slot (or hot_standby_feedback of a standby) holds a snapshot that is { $transactions } transactions old: up to { $dead } dead rows cannot be removed; throughput fell by { $drop } over a trial.
held-snapshot-slot-remedy = Drop the slot if nobody reads it, or let its standby catch up; set hot_standby_feedback = off on a standby with long queries.

missing-index = A statement reads { $rows } rows of { $table } for { $wanted } by a sequential scan, and takes { $share } of the time of a transaction: { $statement }
missing-index-remedy = Create an index on the columns of { $table } in its WHERE; run ANALYZE if there is one.
missing-index-tables = Table { $table } is read as a whole { $scans } times per transaction, { $rows } rows each, which takes { $share } of the clients' time{ $where }.
missing-index-statement = : { $statement }
missing-index-hidden = Table { $table } is read from beginning to end { $scans } times per transaction, { $rows } rows each time, and no statement of the scripts does so: a foreign key's check, a trigger or a function does. It is part of the { $share } of the clients' time on a CPU.
missing-index-hidden-remedy = Create an index on the columns of { $table } that refer to other tables, or by which its triggers and functions look up rows.

network-far = Network round trips of { $trip }, { $trips } per transaction, are { $share } of its { $latency }; the server waited for its clients during { $outside } of their time.
network-far-remedy = Use fewer round trips: pipelines (\startpipeline), functions, several rows per statement; or a nearer client.
network-held-up = Messages are delayed on the way: { $outside } of the clients' time passes outside of the server, { $took } per round trip, although an empty query takes as little as { $trip }.
network-held-up-remedy = Check what is in between: a busy proxy or pooler, one that sends without TCP_NODELAY, so that small messages wait for acknowledgements (40 ms each), or a saturated link.

idle-in-transaction = Sessions are idle in transaction during { $share } of their busy time: the server waits for the next statement of the application, or of what is between{ $after }.
idle-after = , { $share } of that after { $statement }
idle-in-transaction-remedy = Look at what the application does between two statements of a transaction; send fewer statements, or several at once (pipelines, functions). The locks of a transaction are held meanwhile.

neighbour = Other load on the machine: { $who } of the CPUs while they were { $busy } busy.
neighbour-hypervisor = the hypervisor took { $steal }
neighbour-processes = other processes used { $others }
neighbour-both = the hypervisor took { $steal } and other processes used { $others }
neighbour-remedy = Measure when the machine is quiet, or on a dedicated host (comparisons alternate to be less affected).

other-waits = Clients wait during { $share } of their time for events that pgdyno has no rule for, most of it for { $wait } ({ $most }{ $meaning }){ $waiting }{ $nested }.
nested = ; function { $name } takes { $share } of the statements' time ({ $each } per call)
nested-foreign-key = ; checks of foreign keys in table { $name } take { $share } of the statements' time ({ $each } per check)
nested-statement = ; { $name }, which other statements call, takes { $share } of the statements' time ({ $each } per call)
many-tables = ; the plan of { $statement } has { $n } tables and partitions, each of which is locked and opened for an execution
slowest = ; { $share } of a transaction's time is { $statement }
other-waits-meaning = ; PostgreSQL: { $description }
other-waits-statement = ; { $share } of that in { $statement }
other-waits-asleep-remedy = No script calls pg_sleep: look for it in the triggers and functions of the tables that the script changes (track_functions = all shows their time).
other-waits-remedy = Look up { $wait } in the documentation of PostgreSQL, Wait Events (The Cumulative Statistics System).

parallel-query = Clients wait for parallel workers during { $share } of their time, in transactions of { $time } on average{ $waiting }{ $nested }.
parallel-query-remedy = Parallel workers take longer to start than they save here, or use CPUs that the other clients need: set max_parallel_workers_per_gather to 0 for this load, or raise parallel_setup_cost (now { $cost }).

few-clients = The number of clients, { $clients }, is too small for the CPUs, { $idle } of which stay idle: each client runs one statement at a time, and is on a CPU during { $share } of its time{ $most }{ $nested }.
few-clients-remedy = Increase the number of clients (--clients) until the CPUs are busy; where latency matters, make the statements cheaper.

plan-changed-rose = A plan changed within the trial, of a statement that takes { $share } of the time of a transaction: { $before } before, { $after } after; throughput rose by { $drift } over a trial; { $statement }
plan-changed-fell = A plan changed within the trial, of a statement that takes { $share } of the time of a transaction: { $before } before, { $after } after; throughput fell by { $drift } over a trial; { $statement }
plan-changed-remedy = Run ANALYZE before measuring (after = ["analyze"]), or use a longer warm-up; decrease autovacuum_analyze_scale_factor for growing tables.

row-locks = Transactions wait for each other's row locks during { $share } of the clients' time{ $deadlocks }{ $waiting }.
row-locks-deadlocks = , with { $rate } deadlocks per second
row-locks-statement = ; { $share } of the waiting statements are: { $statement }
row-locks-remedy = Spread the updates over more rows (TPC-B: a scale several times the number of clients; TPC-C: more warehouses); update the hot row last in the transaction; shorten the work between it and COMMIT.
row-locks-remedy-deadlocks = Change rows in the same order in all transactions, so that no cycle arises. Spread the updates over more rows (TPC-B: a scale several times the number of clients; TPC-C: more warehouses); update the hot row last in the transaction; shorten the work between it and COMMIT.

server-cpu = The CPUs are { $busy } busy{ $turns } (PostgreSQL { $server }{ $client }{ $others }): backends ran or waited for a CPU during { $share } of the clients' time{ $most }{ $nested }.
server-cpu-turns = { " " }over the turns of both sides
server-cpu-statement = , { $share } of that in { $statement }
server-cpu-client = , pgdyno's client { $client }
server-cpu-others = , others { $others }
server-cpu-remedy = Use more or faster cores, a client on its own machine, prepared statements, or fewer round trips.
server-cpu-unseen = Backends ran or waited for a CPU during { $share } of the clients' time; the machine of the server cannot be seen, so it is not known which{ $nested }.
server-cpu-unseen-remedy = Check the CPU usage of the server's machine; use more or faster cores, or touch fewer rows per statement.

stalls-once = Throughput fell once for { $longest }, to { $level } of the usual level: { $loss } of the throughput is lost. { $seen }
stalls = Throughput fell { $n } times{ $every }: { $loss } of it is lost; the longest dip lasted { $longest } at { $level } of the usual level. { $seen }
stalls-every = , about every { $period }
stalls-remedy = Check the charts over time and the system log of the machine; --interval 0.2 shows more.
contrast-seen = Meanwhile: { $evidence }.
contrast-nothing = No recorded series tells why.
contrast-command = another session ran { $command }
contrast-rise = { $series } { $usual } → { $slow }
contrast-plan = the plan of { $plan }
level-change-fell = Throughput fell from { $before } to { $after } TPS { $at } after the beginning of the measurement, and stayed there. { $seen }
level-change-rose = Throughput rose from { $before } to { $after } TPS { $at } after the beginning of the measurement, and stayed there. { $seen }
level-change-remedy = Report the two levels apart. Undo what changed and repeat the trial; the charts over time show both levels.
series-idle-in-transaction = sessions idle in transaction after { $about }
series-wait = clients in { $about }
series-server-process = { $about } processes
series-others-cpu = CPUs of other programs
series-process-cpu = CPUs of { $about }
series-process-read = reads of { $about }
series-process-write = writes of { $about }
series-steal = CPUs taken by the hypervisor
series-memory-pressure = time stalled for memory
series-stopped = { $about } processes stopped by a signal
series-device-read = reads of { $about }
series-device-write = writes of { $about }
series-device-read-await = read latency of { $about }
series-device-write-await = write latency of { $about }
series-device-flush-await = flush latency of { $about }
series-blocks-read = pages read into shared buffers
series-rows-read = rows read
series-temporary = temporary files
series-wal = WAL
series-full-pages = full-page images
series-checkpoint-buffers = buffers written by checkpoints
series-backend-buffers = buffers written by backends
series-extends = pages added to tables
series-rollbacks = rollbacks
series-deadlocks = deadlocks
series-connections = connections
series-round-trip = round trip
series-throttled = time throttled by the CPU limit
series-snapshot-age = transactions since the oldest snapshot
series-standby-lag = lag of { $about }

sync-standby = Commits wait for a standby during { $share } of the clients' time.
sync-standby-remedy = Use a nearer or faster standby; synchronous_commit = remote_write instead of { $commit }; ANY 1 of several (synchronous_standby_names is { $names }).

temporary-files = Temporary files: a transaction writes { $written }, by statements that take up to { $share } of the clients' time{ $statement }.
temporary-files-statement = : { $statement }
temporary-files-remedy = Increase work_mem (now { $work_mem }) for the role or the statement; or create an index that provides the order.

throttled-storage = The storage is throttled: { $level }, within { $variation } from sample to sample, while clients wait for it during { $share } of their time; { $where }.
throttled-before = a request waits { $seen }, { $times } times as long as { $device } itself takes
throttled-queue = { $device } has { $n } requests in its queue
throttled-storage-remedy = Raise the limit of the volume, the instance (IOPS, MB/s) or the cgroup, or move WAL to its own volume.

wal-flush = Commits wait for WAL to reach the disk during { $share } of the clients' time{ $group }{ $sync }{ $commit }.
wal-flush-group = ; { $n } transactions per sync
wal-flush-sync = , which takes { $sync }
wal-flush-sync-alone = ; a sync takes { $sync }
wal-flush-commit = ; COMMIT takes { $commit }
wal-flush-remedy = Use a device with faster syncs for pg_wal; more clients, so that more commits share a sync; larger transactions; or synchronous_commit = off if the last commits may be lost.

wal-insert = Clients wait for space in the WAL buffers during { $share } of their time; the buffers were full { $full } times per transaction.
wal-insert-remedy = Increase wal_buffers (now { $buffers }), up to 64MB; set wal_compression; drop indexes that are not needed.
wal-segments = Clients wait for new WAL files to be created during { $share } of their time.
wal-segments-remedy = Increase min_wal_size (now { $size }), so that old files are recycled; set wal_recycle = on.

share = { $share }
setting-unknown = not known
setting-default = the default
whole-clients-time = the clients' time
whole-throughput = the throughput
whole-transaction-time = the time of a transaction
whole-cpus = the CPUs
confidence-high = high
confidence-medium = medium
confidence-low = low
finding-cost = { $share } of { $whole }; confidence { $confidence }
not-judged-many = What limits it was judged for { $n } of { $of } configurations: the fastest of each workload and variant, and others spread evenly. `pgdyno explain RUN` judges those that --workload and --clients choose.
not-judged-missing = { $cause } could not be judged: nothing was recorded of { $missing }
not-judged-defect = { $cause } could not be judged: a defect of pgdyno, please report it: { $defect }

# Names of figures.
fact-workers-cpu = CPU of the workers
fact-bytes-moved = bytes read and written
fact-runs = runs
fact-dead-rows-per-live = dead rows per live row
fact-hot-updates = updates that are HOT
fact-misses = pages not in shared buffers
fact-pages-missed = pages missed per transaction
fact-wal-whole = full-page images in WAL
fact-wal-per-transaction = WAL per transaction
fact-checkpoints = checkpoints
fact-checkpointer-writes = checkpointer writes
fact-dirty = dirty pages of the machine
fact-utilisation-of = utilisation of { $device }
fact-utilisation = utilisation
fact-client-cpu = CPU share of the client's busiest thread
fact-client-delay = waiting for a CPU
fact-server-idle = server waits for its clients
fact-clients-per-core = clients per core
fact-context-switches = context switches per transaction
fact-backends-queueing = share of the time in which backends could run that they waited for a CPU
fact-allowed = CPUs allowed
fact-periods = periods throttled
fact-device-reads = device reads
fact-device-writes = device writes
fact-read = read
fact-queue = queue
fact-transaction-age = age of its transaction
fact-times-seen = times seen
fact-age = age
fact-transactions-since = transactions since
fact-dead-rows = dead rows
fact-rows-discarded = rows read and discarded
fact-transaction-share = share of the time of a transaction
fact-round-trip = round trip
fact-round-trips = round trips per transaction
fact-outside = round trip outside of the server
fact-least-round-trip = least round trip of an empty query
fact-client-busy = client's busiest thread on a CPU or waiting for one
fact-steal = steal
fact-other-processes = other processes
fact-postgresql = PostgreSQL
fact-pgdyno = pgdyno
fact-most = most of it
fact-kinds-of-waits = kinds of waits
fact-row-locked = clients waiting for row locks
fact-deadlocks = deadlocks
fact-flushing = share of the others waiting for WAL
fact-cpus-busy = CPUs busy
fact-starts-and-ends = start and end of workers
fact-workers-at-work = workers at work
fact-dips = dips
fact-longest = longest
fact-lag = longest lag to the disk of a standby
fact-temporary = temporary bytes per transaction
fact-temporary-wait = waiting for them
fact-requests = requests
fact-bytes = bytes
fact-variation = variation
fact-request-time = time of a request
fact-device-time = time of the device itself
fact-group = transactions per sync
fact-sync = sync of WAL
fact-commit = COMMIT
fact-transaction = transaction
fact-seen-s = time seen
fact-trials-with-change = trials with a change
fact-trials = trials
fact-rows-read = rows read
fact-scans-per-transaction = scans per transaction
fact-commands = commands
fact-flush-of = flush of { $device }
fact-buffers-full = WAL buffers full per transaction

cause-wal-insert = WAL insertion
cause-wal-flush = WAL sync at commit
cause-throttled-storage = throttled storage
cause-temporary-files = temporary files
cause-sync-standby = synchronous standby
cause-stalls = dips of the throughput
cause-server-cpu = CPUs of the server's machine
cause-row-locks = row locks
cause-plan-changed = changed plan
cause-other-waits = other waits
cause-parallel-query = parallel workers
cause-few-clients = number of clients
cause-noisy-neighbour = other processes on the machine
cause-network = network
cause-idle-in-transaction = application within transactions
cause-missing-index = missing index
cause-held-snapshot = old snapshot
cause-foreign-command = commands of other sessions
cause-level-change = a level that changed
cause-foreign-lock = another session's lock
cause-data-io = data files: reads and writes
cause-cpu-quota = CPU quota
cause-connections = more clients than CPUs
cause-client-bound = pgdyno's client
cause-checkpoint-writes = checkpoint writes
cause-checkpoint-full-pages = full-page images after checkpoints
cause-buffer-misses = reads of pages not in shared_buffers
cause-bloat = bloat
cause-autovacuum = autovacuum
