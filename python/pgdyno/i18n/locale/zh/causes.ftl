# 各原因说明：是什么（about-NAME）、如何识别（-seen）、代价如何测量（-cost）。
# 报告在每项发现旁显示这些文字；docs/guide/causes 各页由此生成。

about-autovacuum = autovacuum 工作进程在客户端运行时清理死元组、更新统计信息。它读写同样的表，占用 CPU，并写 WAL。
about-autovacuum-seen = 工作进程出现在 pg_stat_progress_vacuum、服务器日志（log_autovacuum_min_duration）或服务器进程中。损失达吞吐量的 3% 且区间大于零，或占 CPU 的 4% 起报告。
about-autovacuum-cost = 同一次试验中，有工作进程的采样与其余采样比较吞吐量。若工作进程一直运行，代价为其占繁忙 CPU 的份额。

about-bloat = 每次 UPDATE 和 DELETE 都留下死元组。若不及时清理，表和索引变大，每条语句要读更多的页。页内没有空间或修改了索引列的更新不是 HOT 更新，还要写每个索引。
about-bloat-seen = 一次试验中吞吐量下降 10% 以上，且 pg_stat_all_tables 显示死元组超过 5,000 且达到活行的一半，或 HOT 更新不到一半。
about-bloat-cost = 一次试验中吞吐量降幅的一半。这是估算值，实际影响在零与全部降幅之间。

about-buffer-misses = 不在 shared_buffers 中的页要从内核页缓存复制。不涉及磁盘，但每次复制需要一次系统调用和 CPU 时间。
about-buffer-misses-seen = 语句所需的页至少 5% 不在 shared_buffers 中，设备几乎没有读取，且代价占客户端时间的 4% 以上。
about-buffer-misses-cost = 客户端处于读等待的时间，或 track_io_timing 统计的读取时间；再加上查找、淘汰和复制页的 CPU 时间的估计。

about-checkpoint-full-pages = 检查点之后，对某页的首次修改会把整页（8 KiB）写入 WAL，以防页撕裂（full_page_writes，全页写）。因此每次检查点后 WAL 量骤增，随后回落。
about-checkpoint-full-pages-seen = 整页占 WAL 的 10% 以上，且代价达到 3%。
about-checkpoint-full-pages-cost = 每事务整页多的采样与最平静的四分之一采样比较吞吐量。平静采样不足时，代价为：WAL 等待时间乘以整页在 WAL 中的比例，加上等待检查点写出事务状态页的时间，再加上整页 CPU 时间的估计。

about-checkpoint-writes = 检查点把 shared_buffers 中的所有脏页写入磁盘并同步文件。客户端的读取和 WAL 同步排在这些写入之后。
about-checkpoint-writes-seen = 服务器日志或 checkpointer 的活动显示检查点何时写入。损失达吞吐量的 5% 且区间大于零时报告。
about-checkpoint-writes-cost = 检查点写入期间与同一次试验的其余时间比较吞吐量。

about-client-bound = 运行 pgdyno 的线程大部分时间占用或等待 CPU，服务器在等待客户端。测得的吞吐量只是服务器能力的下限。两者共用一台饱和的机器时互相竞争，服务器单独的极限未知。
about-client-bound-seen = 客户端时间有 25% 以上在服务器之外，且 pgdyno 最忙的线程大部分时间占用或等待 CPU。
about-client-bound-cost = 客户端时间中在服务器之外的份额。

about-connections = 可运行的会话多于 CPU。它们排队等 CPU，上下文切换和持锁时间增加，吞吐量常低于峰值。
about-connections-seen = 每个核至少 8 个客户端，且可运行的后端有 70% 的时间得不到 CPU。
about-connections-cost = 后端等待 CPU 的时间占客户端时间的份额。

about-few-clients = 一个客户端一次只执行一条语句。客户端少时，无论服务器能做多少，总有一部分 CPU 空闲：吞吐量等于客户端数除以延迟。
about-few-clients-seen = 闭环中，客户端有 30% 以上的时间在 CPU 上，至少 15% 的 CPU 空闲，且瓶颈不在 pgdyno 自己的线程。
about-few-clients-cost = 后端运行的时间占客户端时间的份额。

about-cpu-quota = 控制组限制了服务器的 CPU 时间（容器、Kubernetes 限额、systemd CPUQuota）。一个周期的配额用完后，全部进程停到下一周期，即使机器还有空闲 CPU。
about-cpu-quota-seen = 服务器 cgroup 的被限周期计数：达到周期数的 10%，且占客户端时间的 5% 以上。
about-cpu-quota-cost = 后端运行或可运行的时间，乘以配额使其停止的时间比例。

about-data-io = 表页和索引页不在 shared_buffers，也不在页缓存，要从设备读取；或后端为腾出空间自己写脏页。
about-data-io-seen = 数据文件的等待事件（DataFileRead、DataFileWrite、AioIoCompletion 等）占客户端时间的 10% 以上，且未命中的字节中有 20% 以上来自设备。
about-data-io-cost = 这些等待占客户端时间的份额。

about-foreign-command = 不属于负载的会话同时执行命令：VACUUM FULL、CREATE INDEX、ANALYZE、COPY、基础备份、报表查询。它们占用 CPU、I/O 和锁，并写 WAL。
about-foreign-command-seen = 每次观察等待时（每秒十次）从 pg_stat_activity 读取其他会话的命令。损失达吞吐量的 3% 且区间在零以上时报告。吞吐量看不出差别而 CPU 占满时：占 CPU 的 3% 以上时报告；没有统计其他会话的 CPU 用量时，为运行会话的 5%。
about-foreign-command-cost = 将同一试验中有该命令的样本的吞吐量与其余样本比较，按其运行时间的比例计。吞吐量看不出差别时：命令运行期间其他会话所用 CPU 的份额，乘以其运行时间的比例。

about-foreign-lock = 不属于负载的会话持有锁（LOCK TABLE、DDL、长事务），客户端排在其后。
about-foreign-lock-seen = 有客户端等待时，每秒用 pg_blocking_pids 找出持锁会话。占客户端时间的 2% 起报告。
about-foreign-lock-cost = 持锁者为其他会话时，锁等待占客户端时间的份额。

about-held-snapshot = 未结束的事务、预备事务、复制槽或备库持有旧快照。VACUUM 不能清理此后的死元组，表变大，版本链变长。
about-held-snapshot-seen = 其他会话最老的快照不短于半次试验，跨越 1,000 个事务，并保留 1,000 行以上死元组。
about-held-snapshot-cost = 一次试验中吞吐量降幅的一半。这是估算值，实际影响在零与全部降幅之间。

about-level-change = 吞吐量在试验的一部分时间为一个水平，其余时间为另一个水平：删除了索引、改变了参数、计划改变、缓存变热、机器变慢。整个试验的一个数字不代表其中任何一个。
about-level-change-seen = 吞吐量的阶跃达 20% 以上，且距两端至少 2 秒（docs/math.md，Levels）。试验前后读取定义、参数和计划；结论列出不同之处，然后列出在较低水平时更高的每个记录序列。
about-level-change-cost = 较低水平时缺少的吞吐量，与较高水平相比，按整个试验计。

about-missing-index = 没有索引适合 WHERE 条件，语句为了少数几行顺序扫描整张表。
about-missing-index-seen = 语句的计划含顺序扫描，表计数器显示每次执行读取并丢弃 5,000 行以上，且每个所需行对应 100 行以上。脚本的语句都不读取、却在五分之一以上的事务中被全表扫描的表，由外键检查、触发器或函数读取。
about-missing-index-cost = 该语句占事务时间的份额。这是上限：有索引后语句仍需一些时间。

about-network = 每条语句需要客户端与服务器之间的一次往返。服务器很快时，往返可能占延迟的大部分。代理、连接池和 TCP 延迟 ACK 会使其更长。
about-network-seen = 空查询需要 0.3 毫秒以上，且往返占延迟的 20% 以上；或消息耗时远超空查询的最短时间。
about-network-cost = 空查询的最短往返时间乘以每事务语句数，除以延迟。

about-idle-in-transaction = 服务器等待已开启事务的下一条语句时，会话处于 idle in transaction：应用程序在计算、调用其他服务，或语句正在途中。服务器还能做得更多；其间事务一直持有锁和快照。
about-idle-in-transaction-seen = 在被观察的服务器上，会话的繁忙时间中有 25% 以上处于 idle in transaction。这一状态持续超过一秒的会话不算负载。对 pgdyno 自己的负载，则改为判断网络和客户端。
about-idle-in-transaction-cost = 会话繁忙时间中处于该状态的份额。

about-noisy-neighbour = 其他进程，或同一宿主机上的其他虚拟机（steal），占用了服务器和客户端需要的 CPU。
about-noisy-neighbour-seen = steal 占 CPU 的 5%，或既非 pgdyno 也非服务器的进程占繁忙 CPU 的 15%。后者在服务器、客户端和网络合计占客户端时间不足三分之一时置信度为低。
about-noisy-neighbour-cost = 逐个采样计算其占 CPU 的份额。

about-other-waits = 某个等待事件占用客户端的大量时间，而 pgdyno 没有对应规则。
about-other-waits-seen = 其他原因都不涵盖的等待事件占客户端时间的 10% 以上。不计等待客户端；脚本自己调用 pg_sleep 时也不计。
about-other-waits-cost = 这些等待占客户端时间的份额。

about-parallel-query = 并行查询每次执行都要启动工作进程并在结束时退出，约需一毫秒。短查询在这上面花的时间多于节省的时间；如果其他客户端已占满 CPU，工作进程只是与它们争用。
about-parallel-query-seen = 等待并行工作进程（ExecuteGather，以及启动和结束）占客户端时间的 10% 以上，且事务短于 50 毫秒，或客户端已占满 CPU。
about-parallel-query-cost = 介于启动和结束工作进程的时间份额与等待工作进程的全部时间之间：工作进程所做的事，没有它们时由客户端的后端完成。

about-plan-changed = 测试期间规划器为某语句选了另一个计划，通常因为 autovacuum 更新了增长中的表的统计信息。
about-plan-changed-seen = 语句的通用计划在测试前后不同。改变的时刻未知。
about-plan-changed-cost = 一次试验中吞吐量变化的一半，且不超过该语句的时间份额。这是估算值。

about-row-locks = 修改同一行的两个事务只能先后执行：后者等前者提交。少数热点行限制全部吞吐量，与客户端数无关。
about-row-locks-seen = 等待事件 Lock:transactionid 和 Lock:tuple 占客户端时间的 5% 以上，且持锁者是 pgdyno 自己的客户端；或出现死锁（每 20 秒一次以上）。
about-row-locks-cost = 这些等待占客户端时间的份额。若多数持锁者在等 WAL，根源是 WAL 同步，两者并列显示。

about-server-cpu = 服务器所在机器的 CPU 繁忙，主要由 PostgreSQL 占用。每台服务器都有此极限，也是应当达到的极限。
about-server-cpu-seen = CPU 繁忙 90%（或 60% 且后端一半时间等待 CPU）。看不到机器时：客户端时间的 60% 处于没有等待事件的语句中。
about-server-cpu-cost = 后端运行或等待 CPU 的时间占客户端时间的份额。

about-stalls = 吞吐量下降半秒以上后恢复。结论列出其间有何不同：其他会话的命令、锁、检查点，以及每个上升的记录序列。
about-stalls-seen = 低谷：0.5 秒以上低于通常吞吐量的 70%。损失达吞吐量的 3% 起报告，除非另一个有名称的原因已解释一半以上。
about-stalls-cost = 低谷中缺少的事务数，与其前后的通常水平相比。

about-sync-standby = 有同步备库时，备库确认 WAL 后 COMMIT 才返回。每次提交至少一次往返；synchronous_commit = on 时还要等备库磁盘同步。
about-sync-standby-seen = 等待事件 IPC:SyncRep 占客户端时间的 5% 以上。
about-sync-standby-cost = 该等待占客户端时间的份额。

about-temporary-files = 排序、哈希或物化超过 work_mem，溢出到临时文件。
about-temporary-files-seen = 每个事务写 100 kB 以上临时文件。
about-temporary-files-cost = 临时文件等待占客户端时间的份额，或计划溢出的语句的份额。

about-throttled-storage = 云盘、实例或 cgroup 限制每秒请求数或字节数。达到上限后，即使设备本身很快，请求也要排队。
about-throttled-storage-seen = 每秒请求数或字节数在采样间变化不超过 6%，客户端 30% 以上的时间等待 I/O，且请求耗时为设备自报的 4 倍，或设备队列已满。
about-throttled-storage-cost = I/O 等待占客户端时间的份额。

about-wal-flush = WAL 落盘后 COMMIT 才返回。一次刷盘可同时完成当时等待的所有提交（组提交），客户端越多，分摊每次刷盘的事务越多。
about-wal-flush-seen = 等待事件 IO:WALSync、IO:WALWrite 和 LWLock:WALWrite 占客户端时间的 10% 以上。
about-wal-flush-cost = 这些等待占客户端时间的份额。

about-wal-insert = 后端把 WAL 记录复制到 WAL 缓冲区。缓冲区已满或许多后端同时插入时要等待空间。创建新 WAL 文件时也出现同样的等待。
about-wal-insert-seen = 等待事件 LWLock:WALInsert、LWLock:WALBufMapping 和 IO:WALInit* 占客户端时间的 5% 以上。
about-wal-insert-cost = 这些等待占客户端时间的份额。
