"""Findings in Chinese: sentences, remedies and names of figures, by the English that the causes write."""

from __future__ import annotations

import re

#: Sentences of findings, and parts of them: {} stands for a figure, a name or a part that is looked up by itself.
_SENTENCES = {
    # autovacuum
    "Autovacuum{} takes {} of the throughput.": "autovacuum{0}占去吞吐量的 {1}。",
    "Autovacuum{} takes {} of the throughput: {}.": "autovacuum{0}占去吞吐量的 {1}:{2}。",
    "{} runs were logged": "日志中有 {0} 次",
    "{} runs were logged, {}": "日志中有 {0} 次,{1}",
    "its workers use {} of a processor and move {} MB/s": "其工作进程使用一个处理器的 {0},读写 {1} MB/s",
    # bloat
    "Throughput falls by {} over a trial while {} {}": "一次试验中吞吐下降 {0},同时 {1} {2}",
    "fills with dead rows: {} for each live one at the end, and {} of its updates are HOT.":
    "中死行不断增加:结束时每个活行有 {0} 个死行,其更新中 {1} 为 HOT。",
    "is updated off its pages: {} of its updates are HOT ({} dead rows for each live one).":
    "的更新多写到别的页:其更新中 {0} 为 HOT(每个活行有 {1} 个死行)。",
    # buffer-misses
    "{} of the pages were not in shared buffers ({} of them of {}), and reading them takes {} of the clients' time; {}.":
    "{0} 的页不在 shared_buffers 中(其中 {1} 属于 {2}),读取它们占客户端时间的 {3};{4}。",
    "{} of the pages were not in shared buffers, and reading them takes {} of the clients' time; {}.":
    "{0} 的页不在 shared_buffers 中,读取它们占客户端时间的 {1};{2}。",
    "they came from the kernel's page cache": "它们来自内核页缓存",
    "from where cannot be seen": "无法看到它们来自何处",
    # checkpoint-full-pages
    "Whole pages after checkpoints cost {} of {}: {} of the WAL is pages written whole at their first change after {} "
    "({} of WAL a transaction).":
    "检查点后的整页写入占{1}的 {0}:WAL 的 {2} 是{3}之后各页首次修改时写入的整页(每事务 WAL {4})。",
    "Whole pages after checkpoints cost up to {} of {}: {} of the WAL is pages written whole at their first change after "
    "{} ({} of WAL a transaction).":
    "检查点后的整页写入至多占{1}的 {0}:WAL 的 {2} 是{3}之后各页首次修改时写入的整页(每事务 WAL {4})。",
    "Whole pages after checkpoints cost {} of {}: {} of the WAL is pages written whole at their first change after {} "
    "({} of WAL a transaction; {} of the whole pages by: {}).":
    "检查点后的整页写入占{1}的 {0}:WAL 的 {2} 是{3}之后各页首次修改时写入的整页(每事务 WAL {4};整页的 {5} 来自:{6})。",
    "Whole pages after checkpoints cost up to {} of {}: {} of the WAL is pages written whole at their first change after "
    "{} ({} of WAL a transaction; {} of the whole pages by: {}).":
    "检查点后的整页写入至多占{1}的 {0}:WAL 的 {2} 是{3}之后各页首次修改时写入的整页(每事务 WAL {4};整页的 {5} 来自:{6})。",
    "each of {} checkpoints": " {0} 次检查点", "a checkpoint before the measurement": "测量之前的检查点",
    "the throughput": "吞吐量", "the clients' time": "客户端时间",
    # checkpoint-writes
    "While checkpoints write, throughput is lower: {} of it is lost; the checkpointer writes {} MB/s on average.":
    "检查点写盘期间吞吐较低:损失 {0};checkpointer 平均写 {1} MB/s。",
    # client-bound
    "{}: its busiest thread was on a processor {} of the time and waited for one {}, and the server had nothing to do for "
    "its clients {} of their time.":
    "{0}:其最忙的线程 {1} 的时间在处理器上,{2} 的时间在等待处理器;服务器有 {3} 的客户端时间无事可做。",
    "pgdyno's client is busy": "pgdyno 客户端繁忙",
    "pgdyno's client shares the full processors": "pgdyno 客户端也在用满的处理器上",
    # connections
    "Too many connections: {} clients on {} cores waited for a processor {} of their time; a backend that could run had "
    "none {} of the time.": "连接过多:{1} 个核上的 {0} 个连接有 {2} 的时间在等待处理器;可运行的后端进程 {3} 的时间没有处理器。",
    # cpu-quota
    "A limit of {} processors holds the server back in {} of its periods: statements wait for one {} of the clients' time, "
    "while the machine is {} busy.":
    "{0} 个处理器的配额在 {1} 的周期内限制了服务器:语句等待处理器占客户端时间的 {2},而机器的繁忙程度为 {3}。",
    # data-io
    "Reading and writing table pages takes {} of the clients' time; a transaction misses {} pages.":
    "读写表页占客户端时间的 {0};每事务缺 {1} 页。",
    "Reading and writing table pages takes {} of the clients' time; a transaction misses {} pages ({} of them of {}).":
    "读写表页占客户端时间的 {0};每事务缺 {1} 页(其中 {2} 属于 {3})。",
    "Reading and writing table pages takes {} of the clients' time; a transaction misses {} pages ({} of them of {}); {} "
    "does {} requests/s at {} utilisation, a read takes {} ms.":
    "读写表页占客户端时间的 {0};每事务缺 {1} 页(其中 {2} 属于 {3});{4} 每秒 {5} 个请求,利用率 {6},一次读 {7} 毫秒。",
    "Reading and writing table pages takes {} of the clients' time; a transaction misses {} pages; {} does {} "
    "requests/s at {} utilisation, a read takes {} ms.":
    "读写表页占客户端时间的 {0};每事务缺 {1} 页;{2} 每秒 {3} 个请求,利用率 {4},一次读 {5} 毫秒。",
    # foreign-lock
    "Another session ({}) holds a lock on {} that clients wait for: {} of their time.":
    "其他会话({0})持有 {1} 上的锁,客户端为此等待 {2} 的时间。",
    # held-snapshot
    "A replication slot (or a standby's hot_standby_feedback) holds a snapshot that is {} transactions old: up to {} dead "
    "rows cannot be removed; throughput fell by {} over a trial.":
    "复制槽(或备库的 hot_standby_feedback)持有早于 {0} 个事务的快照:至多 {1} 个死行无法清理;一次试验中吞吐下降 {2}。",
    "Another session's transaction has been open for {} and {} others: up to {} dead rows cannot be removed; throughput "
    "fell by {} over a trial.": "其他会话的事务已打开 {0},其间有 {1} 个事务:至多 {2} 个死行无法清理;一次试验中吞吐下降 {3}。",
    # missing-index
    "A statement reads {} rows of {} for {}, by a sequential scan, and takes {} of a transaction's time: {}":
    "有语句以顺序扫描读取 {1} 的 {0} 行以得到 {2} 行,占事务时间的 {3}:{4}",
    # network
    "Network round trips of {} ms, {} a transaction, are {} of its {} ms, and the server had nothing to do "
    "for its clients {} of their time.":
    "网络往返每次 {0} 毫秒,每事务 {1} 次,占其 {3} 毫秒的 {2};服务器有 {4} 的客户端时间无事可做。",
    "Messages are held up on the way: {} of the clients' time passes outside of the server, {} ms a round trip, though "
    "an empty query takes as little as {} ms.":
    "消息在途中滞留:{0} 的客户端时间在服务器之外度过,每次往返 {1} 毫秒,而空查询最少只需 {2} 毫秒。",
    # noisy-neighbour
    "Somebody else is on the machine: {} of the processors while they were {} busy.":
    "机器上另有负载:{0} 的处理器,其时处理器 {1} 繁忙。",
    "the hypervisor took {}": "虚拟机管理器占去 {0}",
    "other processes used {}": "其他进程使用 {0}",
    "the hypervisor took {} and other processes used {}": "虚拟机管理器占去 {0},其他进程使用 {1}",
    # plan-changed
    "A plan changed within the trial, of a statement that takes {} of a transaction's time: {} before, {} after; {}; {}":
    "试验中有语句的执行计划改变,它占事务时间的 {0}:之前 {1},之后 {2};{3};{4}",
    "throughput rose by {} over a trial": "一次试验中吞吐上升 {0}", "throughput fell by {} over a trial": "一次试验中吞吐下降 {0}",
    # other-waits
    "Clients wait {} of their time for what pgdyno has no rule for, most of it for {} ({}).":
    "客户端有 {0} 的时间在等待 pgdyno 没有规则的事件,主要是 {1}({2})。",
    "Clients wait {} of their time for what pgdyno has no rule for, most of it for {} ({}); {} of those that wait for "
    "locks are: {}.":
    "客户端有 {0} 的时间在等待 pgdyno 没有规则的事件,主要是 {1}({2});等锁的语句中 {3} 为:{4}。",
    "Clients wait {} of their time for what pgdyno has no rule for, most of it for {} ({}){}.":
    "客户端有 {0} 的时间在等待 pgdyno 没有规则的事件,主要是 {1}({2}){3}。",
    # row-locks
    "Transactions wait for each other's row locks {} of the clients' time.": "事务互相等待行锁,占客户端时间的 {0}。",
    "Transactions wait for each other's row locks {} of the clients' time, with {} deadlocks a second.":
    "事务互相等待行锁,占客户端时间的 {0},每秒 {1} 次死锁。",
    "Transactions wait for each other's row locks {} of the clients' time, with {} deadlocks a second; {} of the waiting "
    "statements are: {}.": "事务互相等待行锁,占客户端时间的 {0},每秒 {1} 次死锁;等待的语句中 {2} 为:{3}。",
    "Transactions wait for each other's row locks {} of the clients' time; {} of the waiting statements are: {}.":
    "事务互相等待行锁,占客户端时间的 {0};等待的语句中 {1} 为:{2}。",
    # server-cpu
    "Statements ran, or waited for a processor, {} of the clients' time; the server's machine cannot be seen, so it is "
    "not known which.": "语句在执行或等待处理器,占客户端时间的 {0};看不到服务器所在机器,无法区分二者。",
    "The processors are {} busy (PostgreSQL {}): statements ran or waited for one {} of the clients' time.":
    "处理器 {0} 繁忙(PostgreSQL {1}),语句在执行或等待处理器,占客户端时间的 {2}。",
    "The processors are {} busy (PostgreSQL {}, pgdyno's client {}): statements ran or waited for one {} of the clients' "
    "time.":
    "处理器 {0} 繁忙(PostgreSQL {1},pgdyno 客户端 {2}),语句在执行或等待处理器,占客户端时间的 {3}。",
    # stalls
    "once": "1 次", "{} times": "{0} 次",
    "Throughput fell {} without anything that was seen: {} of it was lost, the longest time {} at {} of what is usual.":
    "{0}吞吐下降而未见原因:损失 {1},最长的一次为 {2},其间为平常的 {3}。",
    # sync-standby
    "Commits wait for a standby {} of the clients' time.": "提交等待备库,占客户端时间的 {0}。",
    # temporary-files
    "Temporary files: a transaction writes {}, by statements that take up to {} of the clients' time.":
    "临时文件:每事务写 {0},相关语句至多占客户端时间的 {1}。",
    "Temporary files: a transaction writes {}, by statements that take up to {} of the clients' time: {}.":
    "临时文件:每事务写 {0},相关语句至多占客户端时间的 {1}:{2}。",
    # throttled-storage
    "The storage is throttled: {}, within {} from sample to sample, while clients wait for it {} of their time; {}.":
    "存储被限速:{0},各次采样相差 {1} 以内,客户端为此等待 {2} 的时间;{3}。",
    "a request waits {} ms, {} times as long as {} itself takes": "一个请求等待 {0} 毫秒,是 {2} 自身耗时的 {1} 倍",
    "{} has {} requests in its queue": "{0} 队列中有 {1} 个请求",
    # wal-flush
    "Commits wait for WAL to reach the disk {} of the clients' time.": "提交等待 WAL 落盘,占客户端时间的 {0}。",
    "Commits wait for WAL to reach the disk {} of the clients' time; {} transactions a sync.":
    "提交等待 WAL 落盘,占客户端时间的 {0};每次同步 {1} 个事务。",
    "Commits wait for WAL to reach the disk {} of the clients' time; {} transactions a sync, which takes {} ms.":
    "提交等待 WAL 落盘,占客户端时间的 {0};每次同步 {1} 个事务,耗时 {2} 毫秒。",
    "Commits wait for WAL to reach the disk {} of the clients' time; COMMIT takes {} ms.":
    "提交等待 WAL 落盘,占客户端时间的 {0};COMMIT 耗时 {1} 毫秒。",
    "Commits wait for WAL to reach the disk {} of the clients' time; {} transactions a sync; COMMIT takes {} ms.":
    "提交等待 WAL 落盘,占客户端时间的 {0};每次同步 {1} 个事务;COMMIT 耗时 {2} 毫秒。",
    "Commits wait for WAL to reach the disk {} of the clients' time; {} transactions a sync, which takes {} ms; COMMIT "
    "takes {} ms.": "提交等待 WAL 落盘,占客户端时间的 {0};每次同步 {1} 个事务,耗时 {2} 毫秒;COMMIT 耗时 {3} 毫秒。",
    "Commits wait for WAL to reach the disk {} of the clients' time, which takes {} ms; COMMIT takes {} ms.":
    "提交等待 WAL 落盘,占客户端时间的 {0},每次同步 {1} 毫秒;COMMIT 耗时 {2} 毫秒。",
    "Commits wait for WAL to reach the disk {} of the clients' time, which takes {} ms.":
    "提交等待 WAL 落盘,占客户端时间的 {0},每次同步 {1} 毫秒。",
    # wal-insert
    "Clients wait for a place in the WAL buffers {} of their time; {} times a transaction the buffers were full.":
    "客户端等待 WAL 缓冲区中的位置,占其时间的 {0};每事务缓冲区满 {1} 次。",
    "Clients wait for new files of WAL to be made {} of their time.": "客户端等待新建 WAL 文件,占其时间的 {0}。",
}  # fmt: skip

_REMEDIES = {
    "autovacuum_vacuum_cost_delay larger or autovacuum_vacuum_cost_limit smaller; autovacuum_naptime and the scale "
    "factors of the table; a lower fillfactor, so that updates stay HOT.":
    "加大 autovacuum_vacuum_cost_delay 或减小 autovacuum_vacuum_cost_limit;调整 autovacuum_naptime 和表的 scale factor;"
    "降低 fillfactor,使更新保持 HOT。",
    "Let autovacuum keep up (autovacuum_vacuum_cost_limit larger); fillfactor = 80 on that table; no index on columns "
    "that change.": "让 autovacuum 跟上(加大 autovacuum_vacuum_cost_limit);该表 fillfactor = 80;不在会变化的列上建索引。",
    "A larger shared_buffers: it is {}, the data are {}, of which {} of the rows are used; the memory is {}.":
    "加大 shared_buffers:现为 {0},数据为 {1},其中使用 {2} 的行;内存为 {3}。",
    "Fewer checkpoints: max_wal_size (now {}) and checkpoint_timeout ({}) larger; wal_compression = lz4.":
    "减少检查点:加大 max_wal_size(现为 {0})和 checkpoint_timeout({1});wal_compression = lz4。",
    "checkpoint_completion_target = 0.9 (now {}); checkpoint_timeout and max_wal_size larger; pg_wal on a device of its "
    "own; vm.dirty_background_bytes smaller.":
    "checkpoint_completion_target = 0.9(现为 {0});加大 checkpoint_timeout 和 max_wal_size;pg_wal 放在单独的设备上;"
    "减小 vm.dirty_background_bytes。",
    "A machine of its own for pgdyno; where processors are free, more workers (--workers).":
    "让 pgdyno 使用单独的机器;处理器有空闲时增加工作线程(--workers)。",
    "Fewer clients (a pooler in front of the server); pgdyno scaling finds the number that is best.":
    "减少连接(在服务器前加连接池);pgdyno scaling 可找到最佳连接数。",
    "More memory for the cache (shared_buffers is {}, the memory is {}, the data are {}); a faster device; a smaller hot "
    "set.": "加大缓存(shared_buffers 为 {0},内存为 {1},数据为 {2});更快的设备;更小的热数据。",
    "End that session's transaction; set lock_timeout for maintenance, idle_in_transaction_session_timeout for the "
    "rest.": "结束该会话的事务;维护操作设置 lock_timeout,其余设置 idle_in_transaction_session_timeout。",
    "Drop the slot if nobody reads it, or make its standby catch up; hot_standby_feedback = off on a standby with long "
    "queries.": "无人使用时删除该复制槽,或使其备库追上;有长查询的备库设 hot_standby_feedback = off。",
    "End that transaction (a prepared one: ROLLBACK PREPARED); idle_in_transaction_session_timeout; "
    "hot_standby_feedback and replication slots hold dead rows, too.":
    "结束该事务(两阶段事务用 ROLLBACK PREPARED);设置 idle_in_transaction_session_timeout;hot_standby_feedback 和复制槽也会持有快照。",
    "An index on the columns of {} in its WHERE; ANALYZE, if there is one.": "在 {0} 的 WHERE 列上建索引;若已有索引则 ANALYZE。",
    "Look at what lies between: a proxy or pooler that is busy, or that sends without TCP_NODELAY, so that small messages "
    "wait for acknowledgements (40 ms each); a link that is full.":
    "检查中间环节:繁忙的代理或连接池,或未设 TCP_NODELAY 的代理(小消息须等待确认,每次 40 毫秒);已占满的链路。",
    "Fewer round trips: pipelines (\\startpipeline), functions, several rows a statement; a nearer client.":
    "减少往返:流水线(\\startpipeline)、函数、一条语句多行;客户端离服务器更近。",
    "Measure when the machine is quiet (pgdyno compares in turn to bear with it); a dedicated host.":
    "在机器空闲时测量(pgdyno 轮流对比以减小影响);使用独占的主机。",
    'ANALYZE before measuring (after = ["analyze"]), or a longer warm-up; autovacuum_analyze_scale_factor smaller for '
    "growing tables.":
    '测量前 ANALYZE(after = ["analyze"]),或加长预热;对增长的表减小 autovacuum_analyze_scale_factor。',
    "What {} is: PostgreSQL's documentation, Wait Events (The Cumulative Statistics System).":
    "{0} 的含义见 PostgreSQL 文档“累积统计系统”一章中的等待事件。",
    "min_wal_size (now {}) larger, so that old files are used again; wal_recycle = on.":
    "加大 min_wal_size(现为 {0}),使旧文件得以重用;wal_recycle = on。",
    "Change rows in one order in all transactions: then none wait in a circle. Spread the updates over more rows (TPC-B: "
    "a scale above the number of clients; TPC-C: more warehouses); update the hot row last in the transaction; shorten "
    "what comes between it and COMMIT.":
    "所有事务按同一顺序修改行,避免循环等待。把更新分散到更多行(TPC-B:scale 大于连接数;TPC-C:更多仓库);"
    "在事务最后更新热点行;缩短它与 COMMIT 之间的时间。",
    "Spread the updates over more rows (TPC-B: a scale above the number of clients; TPC-C: more warehouses); update the "
    "hot row last in the transaction; shorten what comes between it and COMMIT.":
    "把更新分散到更多行(TPC-B:scale 大于连接数;TPC-C:更多仓库);在事务最后更新热点行;缩短它与 COMMIT 之间的时间。",
    "Look at the CPU of the server's machine; more or faster cores, or fewer rows touched per statement.":
    "查看服务器机器的 CPU;更多或更快的核,或减少每条语句访问的行。",
    "More or faster cores; a client on a machine of its own; prepared statements; fewer round trips.":
    "更多或更快的核;客户端使用单独的机器;预备语句;减少往返。",
    "Look at the charts over time, and at the machine's own log; --interval 0.2 shows more.":
    "查看随时间变化的图和机器自身的日志;--interval 0.2 可显示更多。",
    "A nearer or faster standby; synchronous_commit = remote_write instead of {}; ANY 1 of several "
    "(synchronous_standby_names is {}).":
    "更近或更快的备库;synchronous_commit = remote_write 代替 {0};多个备库中 ANY 1(synchronous_standby_names 为 {1})。",
    "work_mem larger (now {}), for the role or the statement; an index that gives the order.":
    "为角色或语句加大 work_mem(现为 {0});用索引提供顺序。",
    "The limit of the volume or of the instance (IOPS, MB/s), or of a cgroup: raise it, or move WAL to a volume of its "
    "own.": "云盘、实例(IOPS、MB/s)或 cgroup 的上限:提高上限,或把 WAL 移到单独的盘。",
    "A device with faster syncs for pg_wal; more clients, so that more commits share a sync; larger transactions; "
    "synchronous_commit = off where the last commits may be lost.":
    "pg_wal 使用同步更快的设备;更多连接,使更多提交共用一次同步;更大的事务;可容忍丢失最后提交时 synchronous_commit = off。",
    "A larger limit, or none: cpu.max of the cgroup (Kubernetes: resources.limits.cpu; systemd: CPUQuota); else fewer "
    "connections at a time, since what all use at once is used up at once.":
    "提高或取消配额:cgroup 的 cpu.max(Kubernetes:resources.limits.cpu;systemd:CPUQuota);或减少并发连接,因为同时使用的份额会同时用尽。",
    "wal_buffers (now {}) larger, to 64MB; wal_compression; fewer indexes.":
    "加大 wal_buffers(现为 {0})至 64MB;wal_compression;减少索引。",
}  # fmt: skip

#: Names of figures; {} stands for a device.
_FACTS = {
    "workers' CPU": "工作进程 CPU", "bytes read and written": "读写字节", "runs": "次数",
    "dead rows a live one": "每个活行的死行", "updates that are HOT": "HOT 更新",
    "pages not in shared buffers": "不在 shared_buffers 的页", "pages missed a transaction": "每事务缺页",
    "WAL that is whole pages": "WAL 中的整页", "WAL a transaction": "每事务 WAL", "checkpoints": "检查点",
    "checkpointer writes": "checkpointer 写", "dirty pages of the machine": "机器的脏页", "utilisation of {}": "{0} 利用率",
    "client's busiest thread on a CPU": "客户端最忙线程占用 CPU", "waiting for one": "等待 CPU",
    "server waits for its clients": "服务器等待客户端", "clients a core": "每核连接数",
    "context switches a transaction": "每事务上下文切换", "backends' time waiting for a CPU": "后端等待 CPU 的时间",
    "processors allowed": "允许的处理器", "periods held back": "受限的周期",
    "device reads": "设备读", "device writes": "设备写", "utilisation": "利用率", "read": "一次读", "queue": "队列",
    "its transaction's age": "其事务已持续", "times seen": "看到的次数", "age": "已持续", "transactions since": "其后的事务",
    "dead rows": "死行", "rows read and thrown away": "读取后丢弃的行", "of a transaction's time": "占事务时间",
    "a round trip outside of the server": "服务器之外的每次往返",
    "least round trip of an empty query": "空查询的最短往返",
    "client's busiest thread on a CPU or waiting for one": "客户端最忙线程占用或等待 CPU",
    "round trip": "往返", "round trips a transaction": "每事务往返", "steal": "steal", "other processes": "其他进程",
    "PostgreSQL": "PostgreSQL", "pgdyno": "pgdyno", "clients waiting for row locks": "等待行锁的连接", "of the others, waiting for WAL": "其余连接中等待 WAL 的占比", "deadlocks": "死锁",
    "processors busy": "处理器繁忙", "by PostgreSQL": "PostgreSQL", "by pgdyno": "pgdyno", "dips": "下降次数", "longest": "最长",
    "longest lag to a standby's disk": "到备库落盘的最大延迟", "temporary bytes a transaction": "每事务临时字节",
    "waiting for them": "等待它们", "requests": "请求", "bytes": "字节", "variation": "变化", "a request takes": "一个请求耗时",
    "the device itself": "设备自身", "transactions a sync": "每次同步的事务", "COMMIT": "COMMIT 耗时", "transaction": "事务耗时", "sync of WAL": "WAL 同步", "flush of {}": "{0} flush",
    "WAL buffers full a transaction": "每事务 WAL 缓冲区满", "most of it": "其中最多", "kinds of waits": "等待种类",
}  # fmt: skip
_SETTING = {"not known": "未知", "the default": "默认值"}


def _compiled(texts: dict[str, str]) -> list[tuple[re.Pattern[str], str]]:
    """Return the patterns with their translations, the most specific first.

    The most specific patterns are those with the most English text.
    """
    ordered = sorted(texts.items(), key=lambda x: -len(x[0]))
    return [(re.compile(re.escape(en).replace(r"\{\}", "(.*?)"), re.DOTALL), zh) for en, zh in ordered]


_PATTERNS = {"sentence": _compiled(_SENTENCES), "remedy": _compiled(_REMEDIES), "fact": _compiled(_FACTS)}


def sentence(text: str) -> str | None:
    """Return a finding's sentence in Chinese, or None if this module does not know it."""
    return _translated(text, "sentence")


def remedy(text: str) -> str:
    """Return the remedy in Chinese, or unchanged if this module does not know it."""
    return _translated(text, "remedy") or text


def facts(text: str) -> str:
    """Return the figures in Chinese, separated by semicolons."""
    return ";".join(_fact(part) for part in text.split("; "))


def _fact(part: str) -> str:
    # A name may have blanks in it, and so may a value: "0.226 ms".
    words = part.split(" ")
    for n in range(len(words) - 1, 0, -1):
        if (name := _translated(" ".join(words[:n]), "fact")) is not None:
            return f"{name} {' '.join(words[n:])}"
    return part


def _translated(text: str, what: str) -> str | None:
    for pattern, zh in _PATTERNS[what]:
        if (match := pattern.fullmatch(text)) is not None:
            return zh.format(*(_part(g) for g in match.groups()))
    return None


def _part(text: str) -> str:
    """Translate a figure, a name, or a part of a sentence that has a translation of its own."""
    if (known := _SETTING.get(text)) is not None:
        return known
    figure = re.fullmatch(r"(\S+%) \((\S+) to (\S+%)\)", text)
    if figure is not None:
        return f"{figure[1]}({figure[2]} 至 {figure[3]})"
    # What is all figure or name would fit a pattern of nothing but holes: there is none.
    return (_translated(text, "sentence") if re.search("[a-z] [a-z]", text) else None) or text
