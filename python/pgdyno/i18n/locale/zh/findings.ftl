# 诊断结论:每个原因一句说明、一条建议。{ $name } 为参数。

autovacuum = autovacuum{ $tables }占去吞吐量的 { $share }{ $seen }。
autovacuum-tables = （{ $names }）
autovacuum-runs = ：日志中有 { $runs } 次
autovacuum-cpu = ：其工作进程使用一个 CPU 的 { $cpu }，读写 { $moved }
autovacuum-runs-cpu = ：日志中有 { $runs } 次，其工作进程使用一个 CPU 的 { $cpu }，读写 { $moved }
autovacuum-remedy = 加大 autovacuum_vacuum_cost_delay 或减小 autovacuum_vacuum_cost_limit；调整 autovacuum_naptime 和该表的 scale factor；降低 fillfactor，使更新保持 HOT。

bloat-fills = 一次试验中吞吐下降 { $drop }，同时 { $table } 中死元组不断增加：结束时每个活行有 { $dead } 个死元组，其更新中 { $hot } 为 HOT。
bloat-not-hot = 一次试验中吞吐下降 { $drop }，同时 { $table } 的更新大多写入了其他页：HOT 更新占 { $hot }，每个活行有 { $dead } 个死元组。
bloat-dead = 一次试验中吞吐量下降 { $drop }，同时 { $table } 中死元组不断增加：结束时每个活行有 { $dead } 个死元组。
bloat-remedy = 让 autovacuum 跟上（加大 autovacuum_vacuum_cost_limit）；该表 fillfactor = 80；不在会变化的列上建索引。
bloat-catalog-remedy = 不断有表和其他对象被创建和删除：临时表每个会话只创建一次（ON COMMIT DELETE ROWS），并让 autovacuum 跟上。

buffer-misses = { $misses } 的页不在 shared_buffers 中{ $of }，由此占用客户端时间的 { $share }；{ $source }。
buffer-misses-cache = 它们来自内核页缓存
buffer-misses-unknown = 无法看到它们来自何处
buffer-misses-remedy = 加大 shared_buffers：现为 { $buffers }，数据为 { $data }，其中使用 { $hot } 的行；内存为 { $memory }。
mostly-of = （其中 { $share } 属于 { $name }）

full-pages = 检查点后的全页写入占{ $whole }的 { $share }：WAL 的 { $wal_share } 是{ $after }之后各页首次修改时写入的整页（每事务 WAL { $wal }{ $by }）。
full-pages-frequent = 频繁的检查点约占{ $whole }的 { $share }（全页写入 WAL，以及等待检查点写出的页）：WAL 的 { $wal_share } 是{ $after }之后各页首次修改时写入的整页（每事务 WAL { $wal }{ $by }）。
full-pages-waits = 全页写入约占{ $whole }的 { $share }（等待 WAL）：WAL 的 { $wal_share } 是{ $after }之后各页首次修改时写入的整页（每事务 WAL { $wal }{ $by }）。
full-pages-by = ；全页镜像的 { $share } 来自：{ $statement }
full-pages-each = 每次检查点（共 { $n } 次）
full-pages-earlier = 测量之前的检查点
full-pages-remedy = 减少检查点：加大 max_wal_size（现为 { $size }）和 checkpoint_timeout（{ $timeout }）；wal_compression = lz4。

checkpoint-writes = 检查点写盘期间吞吐较低：损失 { $share }；checkpointer 平均写 { $written }。
checkpoint-writes-remedy = checkpoint_completion_target = 0.9（现为 { $target }）；加大 checkpoint_timeout 和 max_wal_size；pg_wal 放在单独的设备上；减小 vm.dirty_background_bytes。

client-bound = pgdyno 客户端繁忙：其最忙的线程 { $cpu } 的时间在 CPU 上，等待最多的线程 { $delay } 的时间在等待 CPU；客户端时间的 { $outside } 中后端在等待客户端的下一条语句。
client-shares-cpus = pgdyno 客户端也受 CPU 饱和影响：其最忙的线程 { $cpu } 的时间在 CPU 上，等待最多的线程 { $delay } 的时间在等待 CPU；客户端时间的 { $outside } 中后端在等待客户端的下一条语句。
client-bound-remedy = 让 pgdyno 使用单独的机器；CPU 有空闲时增加工作线程（--workers）。

connections = 连接过多：{ $cores } 个核上的 { $clients } 个连接有 { $share } 的时间在等待 CPU；在后端可运行的时间中，等待 CPU 的占 { $queueing }。
connections-remedy = 减少连接，或在服务器前加连接池。pgdyno scaling 可估计最佳连接数。

cpu-quota = { $allowed } 个 CPU 的配额在 { $periods } 的周期内限制了服务器：语句等待 CPU 占客户端时间的 { $share }，而机器的繁忙程度为 { $busy }。
cpu-quota-remedy = 提高或取消配额：cgroup 的 cpu.max（Kubernetes：resources.limits.cpu；systemd：CPUQuota）。否则减少并发连接，因为它们共用同一份额。

data-io = 读写数据文件占客户端时间的 { $share }；每事务 { $missed } 个块未命中缓冲区{ $of }{ $device }。
data-io-device = ；{ $device } 每秒 { $requests } 个请求，利用率 { $utilisation }，一次读 { $read }
data-io-remedy = 加大缓存（shared_buffers 为 { $buffers }，内存为 { $memory }，数据为 { $data }）；更快的设备；更小的热数据。

foreign-command = 另一会话执行了 { $command }（观测到 { $seconds }{ $moved }{ $others }），损失吞吐量的 { $share }。
foreign-command-also = ；另有 { $commands }
foreign-command-others = { $n } 条其他命令
foreign-command-others-one = { $n } 条其他命令
foreign-command-moved = { $read }{ $written }{ $wal }
foreign-command-read = ，读取 { $bytes }
foreign-command-written = ，写入 { $bytes }
foreign-command-wal = ，WAL { $bytes }
foreign-command-concurrent = 另一会话执行了 { $command }（观测到 { $seconds }{ $moved }{ $others }），占用 CPU 的 { $share }。没有它的试验才能显示其代价。
foreign-command-remedy = 在负载低时执行。用普通 VACUUM 或 pg_repack 代替 VACUUM FULL 和 CLUSTER，用 CREATE INDEX CONCURRENTLY 代替 CREATE INDEX，基础备份使用 pg_basebackup --max-rate。

foreign-lock = 其他会话（{ $session }，{ $state }：{ $statement }）持有 { $relation } 上的锁，客户端为此等待 { $share } 的时间。
foreign-lock-remedy = 结束该会话的事务；维护操作设置 lock_timeout，其余设置 idle_in_transaction_session_timeout。
session-unnamed = 未命名
session-active = 活动
statement-none = 无语句

held-snapshot = 其他会话的事务已打开 { $age }，其间有 { $transactions } 个事务：至多 { $dead } 个死元组无法清理；一次试验中吞吐下降 { $drop }。
held-snapshot-remedy = 结束该事务（两阶段事务用 ROLLBACK PREPARED）；设置 idle_in_transaction_session_timeout；hot_standby_feedback 和复制槽也会持有死元组。
held-snapshot-slot = 复制槽（或备库的 hot_standby_feedback）持有早于 { $transactions } 个事务的快照：至多 { $dead } 个死元组无法清理；一次试验中吞吐下降 { $drop }。
held-snapshot-slot-remedy = 无人使用时删除该复制槽，或使其备库追上；有长查询的备库设 hot_standby_feedback = off。

missing-index = 有语句以顺序扫描读取 { $table } 的 { $rows } 行以得到 { $wanted } 行，占事务时间的 { $share }：{ $statement }
missing-index-remedy = 在 { $table } 的 WHERE 列上建索引；若已有索引则 ANALYZE。
missing-index-tables = 表 { $table } 每个事务被整表读取 { $scans } 次，每次 { $rows } 行，占客户端时间的 { $share }{ $where }。
missing-index-statement = ：{ $statement }
missing-index-hidden = 每个事务从头到尾读取表 { $table } { $scans } 次，每次 { $rows } 行，而脚本的语句都不这样做：是外键检查、触发器或函数所为。这是客户端在 CPU 上的 { $share } 时间的一部分。
missing-index-hidden-remedy = 在 { $table } 引用其他表的列上，或触发器和函数查找行所用的列上创建索引。

network-far = 网络往返每次 { $trip }，每个事务 { $trips } 次，占事务延迟 { $latency } 的 { $share }；客户端时间中有 { $outside } 后端在等待客户端。
network-far-remedy = 减少往返：流水线（\startpipeline）、函数、一条语句多行；或让客户端离服务器更近。
network-held-up = 消息在途中滞留：客户端时间的 { $outside } 消耗在服务器之外，每次往返 { $took }，而空查询最快只需 { $trip }。
network-held-up-remedy = 检查中间环节：繁忙的代理或连接池，未设 TCP_NODELAY 的代理（小消息须等待确认，每次 40 毫秒），或已占满的链路。

idle-in-transaction = 会话的繁忙时间中有 { $share } 处于 idle in transaction：服务器在等待应用程序（或中间环节）的下一条语句{ $after }。
idle-after = ，其中 { $share } 在 { $statement } 之后
idle-in-transaction-remedy = 查看应用程序在一个事务的两条语句之间做了什么；减少语句数，或一次发送多条（流水线、函数）。其间事务持有的锁不会释放。

neighbour = 机器上另有负载：{ $who } 的 CPU，此时 CPU 使用率 { $busy }。
neighbour-hypervisor = 虚拟机管理器占去 { $steal }
neighbour-processes = 其他进程使用 { $others }
neighbour-both = 虚拟机管理器占去 { $steal }，其他进程使用 { $others }
neighbour-remedy = 在机器空闲时测量，或使用独占的主机（对比轮流进行，以减小影响）。

other-waits = 客户端有 { $share } 的时间在等待 pgdyno 没有规则的事件，主要是 { $wait }（{ $most }{ $meaning }）{ $waiting }{ $nested }。
nested = ；函数 { $name } 占语句时间的 { $share }（每次调用 { $each }）
nested-foreign-key = ；在表 { $name } 中检查外键占语句时间的 { $share }（每次 { $each }）
nested-statement = ；由其他语句调用的 { $name } 占语句时间的 { $share }（每次调用 { $each }）
many-tables = ；{ $statement } 的计划包含 { $n } 个表和分区，执行时要逐个加锁和打开
slowest = ；{ $statement } 占事务耗时的 { $share }
other-waits-meaning = ；PostgreSQL 的说明：{ $description }
other-waits-statement = ；其中 { $share } 在 { $statement } 中
other-waits-asleep-remedy = 脚本没有调用 pg_sleep：请检查脚本所修改的表的触发器和函数（track_functions = all 显示其耗时）。
other-waits-remedy = { $wait } 的含义见 PostgreSQL 文档“累积统计系统”一章中的等待事件。

parallel-query = 客户端有 { $share } 的时间在等待并行工作进程，事务平均耗时 { $time }{ $waiting }{ $nested }。
parallel-query-remedy = 启动并行工作进程的时间多于它节省的时间，或它占用了其他客户端需要的 CPU：为此负载把 max_parallel_workers_per_gather 设为 0，或增大 parallel_setup_cost（现为 { $cost }）。

few-clients = 客户端数（{ $clients }）太少，不足以用满 CPU，{ $idle } 的 CPU 空闲：每个客户端一次只执行一条语句，{ $share } 的时间在 CPU 上{ $most }{ $nested }。
few-clients-remedy = 增加客户端（--clients）直到 CPU 繁忙；如果关注延迟，则降低语句的开销。

plan-changed-rose = 试验中有语句的执行计划改变，它占事务时间的 { $share }：之前 { $before }，之后 { $after }；一次试验中吞吐上升 { $drift }；{ $statement }
plan-changed-fell = 试验中有语句的执行计划改变，它占事务时间的 { $share }：之前 { $before }，之后 { $after }；一次试验中吞吐下降 { $drift }；{ $statement }
plan-changed-remedy = 测量前 ANALYZE（after = ["analyze"]），或加长预热；对增长的表减小 autovacuum_analyze_scale_factor。

row-locks = 事务互相等待行锁，占客户端时间的 { $share }{ $deadlocks }{ $waiting }。
row-locks-deadlocks = ，每秒 { $rate } 次死锁
row-locks-statement = ；等待的语句中 { $share } 为：{ $statement }
row-locks-remedy = 把更新分散到更多行（TPC-B：scale 大于连接数；TPC-C：更多仓库）；在事务最后更新热点行；缩短它与 COMMIT 之间的时间。
row-locks-remedy-deadlocks = 所有事务按同一顺序修改行，避免循环等待。把更新分散到更多行（TPC-B：scale 大于连接数；TPC-C：更多仓库）；在事务最后更新热点行；缩短它与 COMMIT 之间的时间。

server-cpu = CPU 使用率 { $busy }{ $turns }（PostgreSQL { $server }{ $client }{ $others }）：后端执行或等待 CPU 占客户端时间的 { $share }{ $most }{ $nested }。
server-cpu-turns = （双方交替期间的整机使用率）
server-cpu-statement = ，其中 { $share } 在 { $statement } 中
server-cpu-client = ，pgdyno 客户端 { $client }
server-cpu-others = ，其他 { $others }
server-cpu-remedy = 增加或换用更快的 CPU 核；客户端使用单独的机器；预备语句；减少往返。
server-cpu-unseen = 语句在执行或等待 CPU，占客户端时间的 { $share }；看不到服务器所在机器，无法区分二者{ $nested }。
server-cpu-unseen-remedy = 查看服务器所在机器的 CPU；增加或换用更快的 CPU 核，或减少每条语句访问的行。

stalls-once = 吞吐量下降一次，持续 { $longest }，降至平常的 { $level }：损失吞吐量的 { $loss }。{ $seen }
stalls = 吞吐量下降 { $n } 次{ $every }：损失 { $loss }；最长一次持续 { $longest }，为平常的 { $level }。{ $seen }
stalls-every = ，约每 { $period } 一次
stalls-remedy = 查看随时间变化的图和机器自身的日志；--interval 0.2 可显示更多。
contrast-seen = 其间：{ $evidence }。
contrast-nothing = 没有任何记录的序列说明原因。
contrast-command = 另一会话执行了 { $command }
contrast-rise = { $series } { $usual } → { $slow }
contrast-plan = 计划 { $plan }
level-change-fell = 测量开始 { $at } 后，吞吐量从 { $before } 降到 { $after } TPS，此后保持不变。{ $seen }
level-change-rose = 测量开始 { $at } 后，吞吐量从 { $before } 升到 { $after } TPS，此后保持不变。{ $seen }
level-change-remedy = 分别报告两个水平。撤销所作的改变并重做试验；随时间变化的图显示两个水平。
series-idle-in-transaction = { $about } 之后事务中空闲的会话
series-wait = 处于 { $about } 的客户端
series-server-process = { $about } 进程
series-others-cpu = 其他程序占用的 CPU
series-process-cpu = { $about } 占用的 CPU
series-process-read = { $about } 的读取
series-process-write = { $about } 的写入
series-steal = 被虚拟机管理程序占用的 CPU
series-memory-pressure = 等待内存的时间
series-stopped = 被信号停止的 { $about } 进程
series-device-read = { $about } 的读取
series-device-write = { $about } 的写入
series-device-read-await = { $about } 的读延迟
series-device-write-await = { $about } 的写延迟
series-device-flush-await = { $about } 的刷盘延迟
series-blocks-read = 读入共享缓冲区的页
series-rows-read = 读取的行
series-temporary = 临时文件
series-wal = WAL
series-full-pages = 整页镜像
series-checkpoint-buffers = 检查点写出的缓冲区
series-backend-buffers = 后端写出的缓冲区
series-extends = 表新增的页
series-rollbacks = 回滚
series-deadlocks = 死锁
series-connections = 连接数
series-round-trip = 往返时间
series-throttled = 因 CPU 限额被限制的时间
series-snapshot-age = 自最旧快照以来的事务
series-standby-lag = { $about } 的延迟

sync-standby = 提交等待备库，占客户端时间的 { $share }。
sync-standby-remedy = 更近或更快的备库；synchronous_commit = remote_write 代替 { $commit }；多个备库中 ANY 1（synchronous_standby_names 为 { $names }）。

temporary-files = 临时文件：每事务写 { $written }，相关语句至多占客户端时间的 { $share }{ $statement }。
temporary-files-statement = ：{ $statement }
temporary-files-remedy = 为角色或语句加大 work_mem（现为 { $work_mem }）；或用索引提供顺序。

throttled-storage = 存储被限速：{ $level }，各次采样相差 { $variation } 以内，客户端为此等待 { $share } 的时间；{ $where }。
throttled-before = 一个请求等待 { $seen }，是 { $device } 自身耗时的 { $times } 倍
throttled-queue = { $device } 队列中有 { $n } 个请求
throttled-storage-remedy = 提高云盘、实例（IOPS、MB/s）或 cgroup 的上限，或把 WAL 移到单独的盘。

wal-flush = 提交等待 WAL 落盘，占客户端时间的 { $share }{ $group }{ $sync }{ $commit }。
wal-flush-group = ；每次同步 { $n } 个事务
wal-flush-sync = ，耗时 { $sync }
wal-flush-sync-alone = ；每次同步 { $sync }
wal-flush-commit = ；COMMIT 耗时 { $commit }
wal-flush-remedy = 将 pg_wal 放到 fsync 更快的设备；更多连接，使更多提交共用一次刷盘；更大的事务；可容忍丢失最后提交时 synchronous_commit = off。

wal-insert = 客户端等待 WAL 缓冲区中的位置，占此时间的 { $share }；每事务缓冲区满 { $full } 次。
wal-insert-remedy = 加大 wal_buffers（现为 { $buffers }）至 64MB；wal_compression；减少索引。
wal-segments = 客户端等待新建 WAL 文件，占此时间的 { $share }。
wal-segments-remedy = 加大 min_wal_size（现为 { $size }），使旧文件得以重用；wal_recycle = on。

share = { $share }
setting-unknown = 未知
setting-default = 默认值
whole-clients-time = 客户端时间
whole-throughput = 吞吐量
whole-transaction-time = 事务时间
whole-cpus = CPU
confidence-high = 高
confidence-medium = 中
confidence-low = 低
finding-cost = 占{ $whole }的 { $share }；可信度：{ $confidence }
not-judged-many = 在 { $of } 种配置中判断了 { $n } 种的瓶颈：每种负载和变体中最快的，以及均匀选取的其他配置。用 `pgdyno explain RUN` 加 --workload 和 --clients 可判断其余配置。
not-judged-missing = 无法判断 { $cause }：没有记录 { $missing }
not-judged-defect = 无法判断 { $cause }：pgdyno 的缺陷，请报告：{ $defect }

# 数值名称。
fact-workers-cpu = 工作进程 CPU
fact-bytes-moved = 读写字节
fact-runs = 次数
fact-dead-rows-per-live = 每个活行的死元组
fact-hot-updates = HOT 更新
fact-misses = 不在 shared_buffers 的页
fact-pages-missed = 每事务缓冲区未命中的块
fact-wal-whole = WAL 中的全页镜像
fact-wal-per-transaction = 每事务 WAL
fact-checkpoints = 检查点
fact-checkpointer-writes = checkpointer 写
fact-dirty = 机器的脏页
fact-utilisation-of = { $device } 利用率
fact-utilisation = 利用率
fact-client-cpu = 客户端最忙线程占用 CPU
fact-client-delay = 等待 CPU
fact-server-idle = 服务器等待客户端
fact-clients-per-core = 每核连接数
fact-context-switches = 每事务上下文切换
fact-backends-queueing = 后端可运行的时间中等待 CPU 的比例
fact-allowed = 允许的 CPU
fact-periods = 受限的周期
fact-device-reads = 设备读
fact-device-writes = 设备写
fact-read = 一次读
fact-queue = 队列
fact-transaction-age = 其事务已持续
fact-times-seen = 看到的次数
fact-age = 已持续
fact-transactions-since = 其后的事务
fact-dead-rows = 死元组
fact-rows-discarded = 读取后丢弃的行
fact-transaction-share = 占事务时间
fact-round-trip = 往返
fact-round-trips = 每事务往返
fact-outside = 服务器之外的每次往返
fact-least-round-trip = 空查询的最短往返
fact-client-busy = 客户端最忙线程占用或等待 CPU
fact-steal = steal
fact-other-processes = 其他进程
fact-postgresql = PostgreSQL
fact-pgdyno = pgdyno
fact-most = 其中最多
fact-kinds-of-waits = 等待种类
fact-row-locked = 等待行锁的连接
fact-deadlocks = 死锁
fact-flushing = 其余连接中等待 WAL 的占比
fact-cpus-busy = CPU 繁忙
fact-starts-and-ends = 启动和结束工作进程
fact-workers-at-work = 工作进程执行
fact-dips = 下降次数
fact-longest = 最长
fact-lag = 到备库落盘的最大延迟
fact-temporary = 每事务临时字节
fact-temporary-wait = 等待它们
fact-requests = 请求
fact-bytes = 字节
fact-variation = 变化
fact-request-time = 一个请求耗时
fact-device-time = 设备自身耗时
fact-group = 每次同步的事务
fact-sync = WAL 同步
fact-commit = COMMIT 耗时
fact-transaction = 事务耗时
fact-seen-s = 观测到的时间
fact-trials-with-change = 有变化的试验
fact-trials = 试验数
fact-rows-read = 读取的行
fact-scans-per-transaction = 每事务扫描次数
fact-commands = 命令数
fact-flush-of = { $device } flush
fact-buffers-full = 每事务 WAL 缓冲区满

cause-wal-insert = WAL 插入
cause-wal-flush = 提交时的 WAL 刷盘
cause-throttled-storage = 存储限速
cause-temporary-files = 临时文件
cause-sync-standby = 同步备库
cause-stalls = 吞吐量低谷
cause-server-cpu = 服务器所在机器的 CPU
cause-row-locks = 行锁
cause-plan-changed = 执行计划变化
cause-other-waits = 其他等待
cause-parallel-query = 并行工作进程
cause-few-clients = 客户端数
cause-noisy-neighbour = 本机的其他进程
cause-network = 网络
cause-idle-in-transaction = 事务内的应用程序
cause-missing-index = 缺少索引
cause-held-snapshot = 旧快照
cause-foreign-command = 其他会话的命令
cause-level-change = 水平改变
cause-foreign-lock = 其他会话的锁
cause-data-io = 数据文件读写
cause-cpu-quota = CPU 配额
cause-connections = 连接数多于 CPU 核数
cause-client-bound = pgdyno 客户端
cause-checkpoint-writes = 检查点写入
cause-checkpoint-full-pages = 检查点后的全页写
cause-buffer-misses = shared_buffers 未命中
cause-bloat = 膨胀
cause-autovacuum = autovacuum
