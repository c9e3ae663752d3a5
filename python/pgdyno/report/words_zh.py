"""The report's words in Chinese."""

from __future__ import annotations

import re
from collections.abc import Callable

_UNITS = {"s": "秒", "min": "分钟", "h": "小时", "days": "天"}
_RISKS = {
    "lose the last commits": "丢失最后的提交",
    "destroy the cluster": "损坏整个集群",
    "leave torn pages": "留下残页",
}
#: Causes, as findings name them.
_VERDICTS = {"faster": "更快", "slower": "更慢", "within the margin": "无实质差异", "not yet known": "尚不可知"}


def _span(n: str, unit: str) -> str:
    return f"{n} {_UNITS.get(unit, unit)}"


def configuration(where: str) -> str:
    """Translate a configuration as findings and verdicts name it."""
    return _named(re.sub(r"(\d+) clients?", r"\1 个连接", where).replace(", ", ","))


def _warehouses(where: str) -> str:
    return configuration(re.sub(r"(\d+) warehouses?", r"\1 个仓库", where))


def _named(where: str) -> str:
    """Translate the known workload names in the name of a configuration."""
    # Only the names themselves: `orders-read-only-v2` is the user's.
    known = {"read-only": "只读", "read-write": "读写"}
    return re.sub(r"(?<![\w-])(read-only|read-write)(?![\w-])", lambda m: known[m[1]], where)


def _rest(text: str) -> str:
    """Translate the text after a configuration: a negligible difference, and the change of p99."""
    text = text.replace(", as these two servers were started", "(仅就这两次启动而言)")
    text = re.sub(r", which is within (\S+%)", r",差异在 \1 以内", text)
    text = re.sub(
        r"; (\S+) (falls|rises) by (\S+) to (\S+) \((.+?) to (.+?)\)",
        lambda m: f";{m[1]} {'下降' if m[2] == 'falls' else '上升'} {m[3]} 至 {m[4]}({m[5]} → {m[6]})",
        text,
    )
    return re.sub(r"; (\S+) rises (\S+) to (\S+) times \((.+?) to (.+?)\)", r";\1 升至 \2 至 \3 倍(\4 → \5)", text)


def _counted(text: str) -> str:
    for english, chinese in _VERDICTS.items():
        text = re.sub(rf"(\d+) {english}", rf"\1 项{chinese}", text)
    return text.replace(", ", ",")


#: Whole texts and sentences.
ZH = {
    # Around the tables.
    "This run went wrong:": "本次运行出错:",
    "Made smaller by --shrink:": "已用 --shrink 缩小:",
    "Caveats": "注意事项", "Problem": "问题", "More: --details, or the report.": "更多：--details，或见报告。",
    "Environment": "环境",
    "Filter: words that a row must have": "筛选:行中须包含的词",
    "The rest is in": "其余见",
    "Made by pgdyno. The data are in this file's folder; latency.hlog opens in any HdrHistogram tool.": "由 pgdyno 生成。原始数据"
    "在本文件所在目录;latency.hlog 可用任何 HdrHistogram 工具打开。",
    "Contents": "目录", "Method": "方法", "Trials": "试验", "Reproduce": "重现命令", "Scripts of": "脚本:", "more": "更多",
    "Settings that are not the server's defaults": "与服务器默认值不同的参数",
    "What differs": "差异在哪里", "How much it bears": "能承受多少", "How fast it is": "有多快", "How long a transaction takes": "一个事务要多久",
    "How steady it was": "是否平稳", "Is it right": "结果是否正确", "What it was measured on": "测量环境的数据与存储", "By script": "各脚本",
    "Each ratio with its interval": "各比值及其区间", "script": "脚本", "share": "占比", "B by A": "B 与 A 之比",
    "read-only": "只读", "read-write": "读写", "memory": "内存",
    "Lines: the interval that the verdict stands on; dots: the ratio.": "线:结论所依据的区间;点:比值。",
    "Of TPS more is better, of all others less.": "TPS 越大越好,其余越小越好。", "Dashed: no difference.": "虚线:无差异。",
    "Share: of the committed transactions of all repetitions; TPS: that share of the workload's.": "占比:在全部重复的已提交事务中;TPS:负载的 "
    "TPS 乘以该占比。",
    "Percentiles of all repetitions' transactions together.": "百分位取全部重复的事务合并后的结果。",
    "From sending a statement to its ReadyForQuery, all repetitions together.": "从发出语句到收到 ReadyForQuery,全部重复合并。",
    "A comment above a statement names it: -- name: place an order.": "语句上方的注释为其命名:-- name: place an order。",
    "Both servers were up with all clients connected, and the load went to one at a time, in slices in the order A B B A "
    "or B A A B by chance; the beginning of each slice is left out.": "两台服务器同时在线且连接已全部建立,负载按随机的 A B B A 或 B A A B 顺序轮流加在其中一台上;每片的开头不计。",
    "Both servers were up and under load at once; the beginning of each slice is left out.": "两台服务器同时承受负载;每片的开头不计。",
    "Both servers are up and under load at once: each has what the other leaves of the machine, so the ratio is one of "
    "servers that compete; the beginning of each slice is left out.": "两台服务器同时承受负载:各用对方剩下的资源,因此比值反映的是相互竞争的服务器;每片的开头不计。",
    "Closed loop: each client begins its next transaction when the last has ended.": "闭环:每个连接在上一事务结束后开始下一事务。",
    "Open loop: transactions are due at random times (Poisson), and latency counts from then.": "开环:事务按泊松过程到达,延迟从到达时刻算起。",
    "Throughput counts what was committed within the measurement; latency is of whole transactions, in histograms of 3 "
    "significant digits that are merged, never averaged. ± is half the width of a 95% confidence interval.": "吞吐统计测量期间提交的事务;延迟为整个事务的延迟,"
    "以 3 位有效数字的直方图记录并合并,从不取平均。± 为 95% 置信区间的半宽。",
    "Each rate was chosen by what the trials before it had said of the threshold; a trial is as long as the objective's "
    "figure needs, 5 to 60 s unless --duration says more.": "每个速率由此前试验对阈值的信息选定;试验长度按目标指标所需,5 至 60 秒,除非 --duration 更长。",
    "Memory: anonymous memory of the server's processes together, without shared buffers, the most at the end of any "
    "interval; it grows with the clients.": "内存:服务器各进程匿名内存之和,不含共享缓冲区,取各区间末的最大值;随连接数增长。",
    "Client and server ran on one machine and shared its processors.": "客户端与服务器在同一台机器上,共享处理器。",
    "Nothing is known of rates for hours.": "对持续数小时的速率一无所知。",
    # Titles.
    "Queries per second": "每秒查询数(QPS)",
    "Rows per second": "每秒写入行数",
    "Throughput and latency": "吞吐与延迟",
    "Compared along an axis": "按变量对比",
    "TPS over time": "TPS 随时间变化",
    "Latency by statement": "各语句延迟",
    "Server activity": "服务器活动",
    "Why": "原因",
    "Try:": "建议:",
    "Nothing stands out.": "没有明显的瓶颈。",
    "All findings": "全部发现",
    "Devices": "磁盘设备",
    "clients by what they wait for": "客户端在等待什么",
    "disk (MB/s)": "磁盘(MB/秒)", "disk (IOPS)": "磁盘(IOPS)", "await (ms)": "响应时间 await(毫秒)",
    "events": "事件",
    "Processes": "进程",
    "phase": "阶段",
    "device": "设备",
    "process": "进程",
    "waiting": "等待处理器",
    "no checkpoint": "无检查点",
    "checkpoint": "检查点期间",
    "run": "运行期间",
    "As iostat -x has them, means over the measurement, of the devices under the server's files.":
    "与 iostat -x 相同的指标,为测量期间服务器文件所在设备的平均值。",
    "Phase: while a checkpoint wrote (by the server's log, else by what the checkpointer was seen to do), and the rest.":
    "阶段:检查点写盘期间(依服务器日志,否则依 checkpointer 的活动)与其余时间。",
    "Sampled, so without spread.": "为采样值,没有离散度。",
    "Means over the warm-up, where caches may be cold, and over the measurement.": "分别为预热期间(缓存可能是冷的)与测量期间的平均值。",
    "CPUs: processors used; waiting: processes that were ready and had none.": "CPUs:使用的处理器数;等待:就绪而没有处理器的进程数。",
    "Read: from the block layer; written: given to the kernel, which writes it to the disk then or later.":
    "读:来自块层;写:交给内核的字节,由内核当时或稍后写盘。",
    "Cold: the warm-up behind a restart of the server.": "冷:重启服务器之后的预热期间。",
    "warm-up": "预热", "cold": "冷", "measured": "测量",
    "Statements as the server counts them": "服务器统计的语句",
    "The same work as in production": "与生产相同的工作", "Is it production's work": "是否与生产相同",
    "calls here": "此处调用", "rows here": "此处行数", "blocks": "块数", "blocks here": "此处块数",
    "WAL B here": "此处 WAL 字节", "ms here": "此处毫秒",
    "Share of the calls; the rest is for one call, by pg_stat_statements there and here, so without spread.":
    "调用次数的占比;其余为每次调用,两处均来自 pg_stat_statements,因此没有离散度。",
    "What was not counted is a dash.": "未统计者为短横。", "Plan: the generic one.": "计划:通用计划。",
    "same": "相同", "other": "不同",
    "calls": "调用次数", "hit": "命中", "dirtied": "弄脏", "WAL B": "WAL 字节",
    "full pages": "整页", "temp": "临时", "JIT ms": "JIT 毫秒",
    "By pg_stat_statements, so without spread; all but calls are for one call.":
    "来自 pg_stat_statements,因此没有离散度;除调用次数外均为每次调用。",
    "On private servers counted while trials warm up, since to count costs some percent of the throughput; of others as "
    "they count.": "私有服务器只在预热期间统计,因为统计会使吞吐下降百分之几;其他服务器按其自身的统计。",
    "Hit, read, dirtied, temp: blocks.": "命中、读、弄脏、临时:块数。",
    "Mean: execution within the server, without planning and network.": "平均:服务器内的执行时间,不含计划与网络。",
    "Locks": "锁", "mode": "模式", "held": "持有", "fast path": "快速路径",
    "Sessions at a time, means of looks at pg_locks every two seconds: what takes less than milliseconds is seldom seen.":
    "同一时刻的会话数,每两秒查看一次 pg_locks 取平均:不足数毫秒的锁很少能看到。",
    "Fast path: of those held, without the shared lock table.": "快速路径:持有的锁中不经过共享锁表者。",
    "What the server's files take": "服务器文件占用", "database": "数据库", "growth MB/s": "增长 MB/秒",
    "pg_wal min": "pg_wal 最小", "pg_wal max": "pg_wal 最大",
    "As the server tells every five seconds.": "由服务器每五秒报告一次。",
    "Database: at the end of the last trial; growth: over the trials, with their warm-up.":
    "数据库:最后一次试验结束时;增长:各次试验期间,含预热。",
    "In pg_wal are segments that are kept for the next checkpoints, standbys, slots and the archive.":
    "pg_wal 中是为后续检查点、备库、复制槽和归档保留的段。",
    "What shared buffers hold": "共享缓冲区的内容",
    "of all": "占全部", "of the relation": "占该关系", "dirty": "脏", "usage": "使用计数",
    "By pg_buffercache, after the last trial of each configuration.": "来自 pg_buffercache,各配置最后一次试验之后。",
    "Usage: how often the clock sweep finds a buffer used before it may go, 0 to 5, mean.":
    "使用计数:时钟扫描淘汰缓冲块之前的使用计数,0 至 5,取平均。",
    "The longest trial of each, on equal scales; below the throughput the device that was used most.":
    "各取最长的一次试验,刻度相同;吞吐下方为使用最多的设备。",
    "Shaded: checkpoints.": "阴影:检查点。",
    "written (MB/s)": "写(MB/秒)", "a write (ms)": "一次写(毫秒)", "read (MB/s)": "读(MB/秒)", "utilisation (%)": "利用率(%)",
    "While loading, what is left in the page cache is written in a later phase.": "加载时留在页缓存中的数据会在后面的阶段写盘。",
    "idle on purpose": "按计划空闲",
    "cause": "原因",
    "cost": "占比",
    "of": "占",
    "confidence": "可信度",
    "Cost: the part of the clients' time, or of the throughput, that goes into the cause, with its 95% interval "
    "over samples. Parts of the clients' time come from samples of pg_stat_activity; parts of the throughput "
    "compare times with and without the cause. What could not be sampled is not found.": "占比:该原因占客户端时间或"
    "吞吐量的比例及其 95% 置信区间。客户端时间来自对 pg_stat_activity 的采样,吞吐量的损失由有无该原因的时段对比得出。"
    "未能采样的原因不会被发现。",
    "One trial on one axis. Waits: our clients, sampled from pg_stat_activity, and the kernel's scheduler: a backend that "
    "waits for a processor may be idle for PostgreSQL. Disk: the devices under the server's files.":
    "同一时间轴上的一次试验。等待:由 pg_stat_activity 采样及内核调度器所得的客户端状态(等待处理器的后端在 PostgreSQL 看来可能是空闲);磁盘:服务器文件所在的设备。",
    "Loading": "数据加载",
    "Sizes": "大小",
    "Storage probe": "存储探测",
    "Making a page durable": "单页落盘",
    "What went wrong": "异常",
    "Every trial": "全部试验",
    "Queries per second by configuration": "各配置的 QPS",
    "New orders a minute by configuration": "各配置的每分钟新订单数",
    "Throughput over time": "吞吐随时间变化",
    "Latency percentiles over time": "延迟百分位随时间变化",
    "Latency distribution": "延迟分布",
    "Capacity": "容量",
    "Latency by throughput": "不同吞吐下的延迟",
    "Throughput by clients": "不同连接数下的吞吐",
    "Each point is a trial at a rate; the dashed line is the objective.": "每个点是某一速率下的一次试验;虚线为目标。",
    "Points: repetitions.": "点:各次重复。",
    "Line: the Universal Scalability Law, fitted; band: its 95% interval, by levels as units, beyond the last point by "
    "prediction; triangle: its knee.": "线:拟合的通用可扩展性定律(USL);带:其 95% 区间(以连接数为单位),最后一个点之后为预测;三角:拐点。",
    "The search ended before the interval was narrow.": "搜索在区间足够窄之前结束。",
    "rate TPS": "速率 TPS", "done TPS": "完成 TPS", "holds": "满足", "yes": "是", "no": "否",
    # TPC-C.
    "TPC-C: new orders a minute": "TPC-C:每分钟新订单数",
    "TPC-C with waits: new orders a minute": "TPC-C(有等待):每分钟新订单数",
    "TPC-C: the standard's limits": "TPC-C:标准规定的限制",
    "TPC-C: consistency": "TPC-C:一致性",
    "warehouses": "仓库数", "waits": "等待", "new orders/min": "新订单/分", "committed/min": "有效/分", "transactions/min": "事务/分",
    "reads/s": "读/秒", "writes/s": "写/秒", "other/s": "其他/秒", "retried/s": "重试/秒", "transaction": "事务", "at least": "至少", "p90 ms": "p90 毫秒",
    "limit ms": "上限(毫秒)", "clause": "条款", "condition": "条件", "checked": "检查次数", "result": "结果",
    "met": "符合", "not met": "不符合", "none": "无",
    "TPC-C-like, not audited.": "类 TPC-C,未经审计。",
    "New orders: as tpmC counts them, with the one in a hundred that the standard has rolled back; committed: without those.":
    "新订单:按 tpmC 的口径,含标准规定回滚的百分之一;有效:不含这些。",
    "Transactions: all five kinds, times 60, which some reports call tpmC.": "事务:五种事务合计 × 60,有些报告称之为 tpmC。",
    "Reads, writes, other: statements, as sysbench splits them; other is BEGIN, COMMIT and ROLLBACK.":
    "读、写、其他:语句数,按 sysbench 的分类;其他为 BEGIN、COMMIT 和 ROLLBACK。",
    "As a function a whole transaction is one statement, so compare transactions.":
    "以存储函数执行时一条语句就是整个事务,因此应比较事务数。",
    "Retried: met a serialization failure or a deadlock, and were begun again.": "重试:因序列化失败或死锁而重新执行的事务。",
    "Waits: the standard's keying and think times; figures with and without them are not comparable.":
    "等待:标准规定的键入与思考时间;有等待与无等待的数据不可比。",
    "Clauses 5.2.3 and 5.2.5.3: the least share of each transaction, and what nine of ten must keep, which must not be "
    "below the mean; of a delivery until it is carried out.":
    "条款 5.2.3 与 5.2.5.3:各事务的最低占比,以及十分之九须满足的响应时间(不得低于平均值);发货事务计到执行完毕。",
    "TPC-C: what was drawn": "TPC-C:抽取的输入",
    "input": "输入", "drawn": "样本数", "from": "下限", "to": "上限", "too short to say": "时间太短,无法判断",
    "new orders rolled back": "回滚的新订单", "order lines of an order": "每个订单的行数",
    "order lines of other warehouses": "其他仓库的订单行", "payments of other warehouses": "其他仓库的付款",
    "payments by last name": "按姓氏的付款", "order-statuses by last name": "按姓氏的订单查询",
    "deliveries that skipped a district": "跳过某区的发货",
    "Clauses 5.5.1.5 and 2.7.4.2: ranges for what clients draw by chance, the warm-up included, and for deliveries that "
    "found a district without a new order, which are to be reported where they are more than one, and more than 1%.":
    "条款 5.5.1.5 与 2.7.4.2:客户端随机抽取(含预热)的规定范围,以及有区没有新订单的发货:多于一次且超过 1% 时须报告。",
    "Outside of a range by no more than chance does to so few once in a thousand times: too short to say.":
    "超出范围,但如此少的样本随机出现这种偏差的概率不小于千分之一:时间太短,无法判断。", "to be reported": "须报告",
    "A terminal's own session carries out its deliveries, while it thinks; the standard's queue is not there.":
    "发货由终端自己在思考时间内执行,没有标准中的队列。",
    "An audited run measures for two hours at least.": "经审计的测试至少测量两小时。",
    "Clause 3.3.2 of the standard, checked in the tables after each trial.": "标准条款 3.3.2,每次试验后在表中检查。",
    "3.3.2.11 counts deliveries, which the standard's wording, made for tables that are just populated, does not.":
    "3.3.2.11 计入了发货次数;标准原文针对刚加载的表,不计发货。",
    "W_YTD is the sum of its districts' D_YTD": "W_YTD 等于其各区 D_YTD 之和",
    "D_NEXT_O_ID - 1 is the greatest O_ID, and NO_O_ID where there is one": "D_NEXT_O_ID - 1 等于最大的 O_ID 与 NO_O_ID",
    "the new orders of a district have no gaps": "各区未发货订单号连续",
    "the sum of O_OL_CNT is the number of order lines, by district": "各区 O_OL_CNT 之和等于订单行数",
    "O_CARRIER_ID is null exactly where there is a new order": "O_CARRIER_ID 为空当且仅当订单未发货",
    "O_OL_CNT is the number of lines of each order": "O_OL_CNT 等于每个订单的行数",
    "OL_DELIVERY_D is null exactly where the order's O_CARRIER_ID is": "OL_DELIVERY_D 为空当且仅当其订单的 O_CARRIER_ID 为空",
    "W_YTD is the sum of its H_AMOUNT": "W_YTD 等于其 H_AMOUNT 之和",
    "D_YTD is the sum of its H_AMOUNT": "D_YTD 等于其 H_AMOUNT 之和",
    "C_BALANCE is what was delivered less what was paid": "C_BALANCE 等于已发货金额减去已付金额",
    "orders less new orders are 2,100 and what was delivered since, by district": "各区订单数减未发货数等于 2,100 加此后的发货数",
    "C_BALANCE and C_YTD_PAYMENT are together what was delivered": "C_BALANCE 与 C_YTD_PAYMENT 之和等于已发货金额",
    # Standbys.
    "What standbys cost": "同步复制的代价", "What standbys showed": "备库上读到的数据", "Throughput by what commits wait for": "吞吐量与提交所等待的对象",
    "commit p50 ms": "提交 p50 毫秒", "commit p95 ms": "提交 p95 毫秒", "commit p99 ms": "提交 p99 毫秒", "waiting ±": "等待 ±", "lag ms": "延迟 毫秒", "lag max ms": "最大延迟 毫秒",
    "lag max": "最大滞后", "standby": "备库", "stale p50 ms": "陈旧 p50 毫秒", "stale p95 ms": "陈旧 p95 毫秒", "stale p99 ms": "陈旧 p99 毫秒", "stale max ms": "陈旧 最大 毫秒",
    "read p50 ms": "读 p50 毫秒", "read p99 ms": "读 p99 毫秒", "beats": "心跳数", "waited for": "等待的备库", "round_trip_ms": "附加往返 毫秒",
    "sync commit": "同步级别", "waits for": "等待", "rtt ms": "附加往返 毫秒",
    "Commit: the statement that commits, all repetitions together.": "提交:提交语句的延迟,全部重复合并。",
    "Waiting: the part of the clients' time in which commits waited for standbys (wait event SyncRep, sampled), with half the width of its 95% interval.": "等待:客户端时间中提交等待备库(等待事件 SyncRep,采样)所占比例,及其 95% 区间的半宽。",
    "Lag: until what was committed is seen on a standby, as the primary knows it (replay_lag), sampled each second: mean and longest of all standbys, and bytes.": "延迟:提交后到备库可见的时间,由主库统计(replay_lag),每秒采样:所有备库的平均值与最大值,以及字节数。",
    "Stale: from the answer to a commit on the primary until a read on the standby sees it, by a heartbeat: a row that is updated 50 times a second and read on each standby each millisecond or two, so no finer than that; of all repetitions together.": "陈旧:主库应答提交后到备库读到它的时间,由心跳测得(主库上的一行每秒更新 50 次,各备库每一两毫秒读取一次,精度不高于此),全部重复合并。",
    "Reads: what the experiment reads on standbys meanwhile, closed loop unless it names a rate.": "读:实验同时在备库上执行的读取,未指定速率时为闭环。",
    # Columns and axes.
    "instance": "实例规格", "rows": "行数", "hot set": "热数据", "clients": "连接数", "workload": "负载", "variant": "变量",
    "TPS": "TPS", "±": "±", "spread": "离散度", "n": "n", "target": "目标", "dataset": "数据集", "version": "版本",
    "p50 ±": "p50 ±", "p95 ±": "p95 ±", "p99 ±": "p99 ±", "p99.9 ±": "p99.9 ±", "p50 ms": "p50 毫秒", "p95 ms": "p95 毫秒", "p99 ms": "p99 毫秒", "p99.9 ms": "p99.9 毫秒", "max ms": "最大毫秒",
    "mean ms": "平均毫秒", "mean ±": "平均 ±", "count": "次数", "statement": "语句", "rows a transaction": "每事务行数", "rows/s": "行/秒", "index growth": "索引增长",
    "average": "平均", "lowest": "最低", "highest": "最高", "intervals": "区间数", "drift": "趋势", "WAL": "WAL",
    "WAL B/row": "WAL 字节/行", "HOT": "HOT", "tables": "表", "indexes": "索引", "checkpoints": "检查点", "place": "位置",
    "method": "方式", "generate s": "生成(秒)", "keys s": "主键(秒)", "vacuum s": "清理(秒)", "all s": "合计(秒)",
    "MB/s": "MB/秒", "relation": "对象", "kind": "类型", "size": "大小", "level": "层级", "buffers": "缓冲块", "job": "作业",
    "what": "读写", "IOPS": "IOPS", "operations/s": "次/秒", "µs": "微秒", "trial": "试验", "state": "状态", "outcomes": "结果",
    "committed": "已提交", "client CPU": "客户端 CPU", "configuration": "配置", "compared": "对比", "figure": "指标",
    "verdict": "结论", "seconds": "秒", "latency (ms)": "延迟(毫秒)",
    "slower than that (%)": "比它慢的比例(%)", "percentile": "百分位", "QPS": "QPS", "throughput": "吞吐",
    # Cells.
    "finished": "完成", "failed": "失败", "interrupted": "中断", "read": "读", "write": "写", "table": "表", "index": "索引",
    "random direct": "随机 直接 IO", "sequential direct": "顺序 直接 IO", "random buffered": "随机 缓冲 IO",
    "sequential buffered": "顺序 缓冲 IO", "faster": "更快", "slower": "更慢", "not yet known": "尚不可知", "less": "更少",
    "means": "均值", "change": "变化", "Compared": "对比", "direct": "直接写文件", "copy": "COPY",
    # Notes.
    "Mean over the repetitions, at the number of clients that was best; the next table has all of them.": "各次重复的平均值,"
    "取最佳连接数;下一张表列出全部。",
    "QPS counts the SQL statements of committed transactions, BEGIN and END included.": "QPS 统计已提交事务中的 SQL 语句数,"
    "包括 BEGIN 和 END。",
    "TPS times the rows that each transaction writes: mean of n repetitions, ± as in the next table.": "TPS × 每事务写入行数:"
    "n 次重复的平均值,± 的含义见下一张表。",
    "Index growth: of all indexes over a trial, warm-up included, mean of the repetitions.": "索引增长:一次试验(含预热)中全部索引"
    "的增长,取各次重复的平均值。",
    "TPS: mean over n repetitions, or over n starts of the server where there are several.":
        "TPS:n 次重复的平均值;服务器多次启动时为 n 次启动的平均值。",
    "±: half the width of its 95% confidence interval, as a part of it; of a single repetition from its own time "
    "series, which does not know how far equal runs lie apart.": "±:其 95% 置信区间的半宽,以所占比例表示;只有一次试验时由其时间序列"
    "估计,无法反映多次运行之间的差异。",
    "Spread: (highest - lowest) / median.": "离散度:(最高 − 最低)/ 中位数。",
    "Latency of whole transactions, percentiles of all repetitions' transactions together, to 3 significant digits; client and "
    "server on one machine count each other's waiting for a CPU.": "延迟为整个事务的延迟,百分位取全部重复的事务合并后的结果,3 位有效数字;"
    "客户端与服务器同机时,等待 CPU 的时间也计入其中。",
    "Too few: no transaction lies beyond it.": "过少:没有事务超出该百分位。", "A dash: no one figure holds.": "短横:没有单一数值能够代表。",
    "too few": "过少",
    "the throughput went from one level to another, or stood still: no one figure describes it":
        "吞吐由一个水平变到另一水平,或曾停滞:没有单一数值能够代表",
    "find out what changed (events.jsonl and the timeline show when), or measure both levels by themselves":
        "找出发生了什么变化(时刻见 events.jsonl 与时间线),或分别测量两个水平",
    "p50 ± and so on: as ±, of the percentile beside it.": "p50 ± 等:同 ±,为旁边百分位的置信区间。",
    "p50 ± and so on: by the trial's own intervals.": "p50 ± 等:由该次试验自身的时间区间估计。",
    "Count: executions.": "次数:执行次数。", "Mean ± and so on: as in the table above.": "平均 ± 等:含义同上表。",
    "As loaded, before the trials.": "加载完成时、试验开始之前的大小。",
    "Drift: the trend over a measurement, as a part of its mean; of the repetition where it is largest.": "趋势:测量期间的线性变化占均值"
    "的比例,取变化最大的一次。",
    "From sending a statement to its ReadyForQuery, all repetitions together, over the widest hot set.": "从发出语句到收到 "
    "ReadyForQuery,全部重复合并,取最大的热数据范围。",
    "From before each trial to after it, warm-up included; mean of the repetitions.": "从每次试验之前到之后,含预热;取各次重复的平均值。",
    "WAL B/row: bytes for each row that was inserted or updated.": "WAL 字节/行:每插入或更新一行产生的 WAL 字节数。",
    "HOT: updates that left the indexes alone.": "HOT:未触及索引的更新所占比例。",
    "Tables, indexes: growth of all of the database.": "表、索引:整个数据库的增长。",
    "Loaded once, so these times have no spread.": "只加载一次,因此没有离散度。",
    "Loading by direct writes keys and other indexes together with the tables.": "direct 方式把键和其他索引与表一起写入。",
    "MB/s: bytes of tables and keys by the time of all phases, without checks.": "MB/s:表与键的字节数除以各阶段(不含检查)的总时间。",
    "Rows: as the planner estimates them.": "行数:优化器的估计值。",
    "Level: of a B-tree's root, by bt_metap (0: one page).": "层级:B-tree 根页的层级,来自 bt_metap(0 表示只有一页)。",
    "Buffers: pages that a search for one key touches in index and table, by EXPLAIN (ANALYZE, BUFFERS).": "缓冲块:按一个键查找时在索引"
    "和表中访问的页数,来自 EXPLAIN (ANALYZE, BUFFERS)。",
    "One measurement each, so no spread.": "各测一次,没有离散度。",
    "The file is smaller than twice the memory: the buffered jobs tell of the page cache more than of the storage (--size sets "
    "a larger one).": "文件小于内存的两倍:缓冲 IO 的结果更多反映页缓存而非存储(可用 --size 加大)。",
    "Short: storage with a burst allowance or a write cache shows its best; --seconds 180 is what published figures use.": "时间较短:"
    "有突发额度或写缓存的存储会显得更好;发布的数据一般用 --seconds 180。",
    "Fio was not found, so its jobs are missing: apt-get install fio, dnf install fio.": "未找到 fio,因此没有其结果:apt-get install "
    "fio 或 dnf install fio。",
    "Pg_test_fsync was not found: it comes with PostgreSQL's server, or pgdyno[embedded].": "未找到 pg_test_fsync:它随 PostgreSQL "
    "服务器或 pgdyno[embedded] 提供。",
    "pg_test_fsync: one page of 8 kB written and synced, one after the other.": "pg_test_fsync:逐次写入并同步一个 8 kB 页。",
    "client CPU: of the busiest worker thread's time, the part on a CPU.": "客户端 CPU:最忙的工作线程占用 CPU 的时间比例。",
    "client CPU: of the busiest worker thread's time, the part on a CPU. Each trial's folder under trials/ has its time series "
    "(intervals.parquet), its latencies (latency.hlog) and its events (events.jsonl).": "客户端 CPU:最忙的工作线程占用 CPU 的时间比例。"
    "trials/ 下每个试验的目录中有时间序列(intervals.parquet)、延迟(latency.hlog)和事件(events.jsonl)。",
    "Where nothing differs, about one verdict in 100 and one table in 20 is wrong.": "若并无差异,约每 100 个结论错 1 个,每 20 张表有 1 张出错。",
    "What takes longer than a slice (checkpoints, vacuum, what a cache learns, writes to a disk that both share) a duet does not "
    "show: --order random does.": "比一个时间片更长的影响(检查点、清理、缓存变化、对共用磁盘的写入)不会体现,请用 --order random。",
    "Per transaction (/tx): warm-up included.": "每事务(/tx):含预热。",
    "Under n: pairs of slices; of what is per transaction (/tx) starts or repetitions.": "n:时间片的对数;每事务的指标(/tx)为启动或重复次数。",
    "Both servers are up, and the load goes to one at a time; the beginning of each slice is left out.": "两台服务器同时在线,负载轮流加在"
    "其中一台上;每片的开头不计。",
    "The trials of each were run one after the other: a drift of the machine counts as a difference.": "各配置的试验依次进行:机器状态的"
    "漂移会算作差异。",
    "The trials differ too much among themselves to tell: find out what disturbs them, or measure longer ones.":
        "各次试验彼此相差太大,无法判断:请找出干扰来源,或延长测量。",
    "not known": "尚不可知",
    "The search ended before its intervals were narrow: longer trials (--duration) tell more.":
        "搜索结束时区间仍不够窄:延长试验(--duration)可知更多。",
    "Bars: mean of the repetitions.": "柱:各次重复的平均值。",
    "Lines: its 95% confidence interval, where it is known.": "线:其 95% 置信区间(已知时)。",
    "Each line is one trial; the warm-up is left of zero.": "每条线是一次试验;零点左侧为预热。",
    "Where there are more intervals than points, the lowest and the highest of each stretch are shown.": "区间多于点数时,显示每段的最低"
    "和最高值。",
    "First repetition of each configuration; of each interval's own transactions, logarithmic scale.": "每个配置的第一次试验;按各区间自身的"
    "事务统计,对数坐标。",
    "Where there are more intervals than points, the highest of each stretch.": "区间多于点数时,显示每段的最高值。",
    "All repetitions together.": "全部重复合并。",
    "Read: so many percent of the transactions took longer than so long.": "读法:有百分之多少的事务耗时超过多长。",
    # Caveats.
    "the measurement is shorter than 10 s": "测量时间不足 10 秒",
    "use --duration 60 or longer for figures to publish": "用于发布的数据请使用 --duration 60 或更长",
    "fewer than 3 repetitions: how far equal trials lie apart is hardly known": "重复少于 3 次:相同试验之间的离散程度几乎未知",
    "throughput rose or fell from repetition to repetition: what is shown is the mean of a slope": "吞吐随重复次数持续上升或下降:显示的是这一趋势的平均",
    "find out what grows or wears (tables, dead rows, a burst allowance); use between.restore, or longer trials": "查明什么在增长或损耗(表、死行、突发额度);使用 run.between.restore 或更长的试验",
    "use --repetitions 5": "请使用 --repetitions 5",
    "the client's threads used a CPU whole, or waited for one: it may be what limits": "客户端线程占满一个 CPU,或在等待 CPU:瓶颈可能在"
    "客户端",
    "open loop (--rate): latency or backlog rose all through the measurement: latencies depend on its length":
    "开环(--rate):整个测量期间延迟或积压持续上升,延迟取决于测量时长",
    "use a lower --rate: the server does not sustain this one": "降低 --rate:服务器无法承受该速率",
    "the server broke the protocol: these connections were given up, and nothing that they said is counted":
    "服务器违反协议:这些连接已被放弃,其应答均不计入",
    "see events.jsonl; is there a proxy or a pooler between?": "见 events.jsonl;中间是否有代理或连接池?",
    "use more workers (--workers), or a machine of its own for the client": "增加 --workers,或为客户端使用单独的机器",
    "client and server ran on the same machine and shared its CPUs": "客户端与服务器在同一台机器上,共享 CPU",
    "measure from another machine with --target for figures that are the server's alone": "要得到服务器单独的数据,请在另一台机器上用 "
    "--target 测量",
    "another pgdyno was at work on this machine: each slowed the other down": "本机上还有另一个 pgdyno 在运行:彼此拖慢",
    "run one after the other": "请依次运行",
    "open loop (--rate): the throughput is what was asked for, not what the server can do": "开环(--rate):吞吐是所要求的速率,而不是"
    "服务器的能力",
    "read the latencies, which count from when each transaction was due": "请看延迟:从事务应开始的时刻算起",
    "a replay: transactions begin when they did in production, so the throughput is production's": "回放:事务按生产中的时刻开始,吞吐即生产的吞吐",
    "read the latencies, which count from when each transaction was begun": "请看延迟:从事务开始的时刻算起",
    "a statement found or changed no row in most of its executions: the throughput counts work that was not done": "某语句多数执行未读到或未改动任何行:吞吐量计入了并未做成的工作",
    "look for an empty table, keys beyond it, a wrong search_path, row-level security, a rule or a trigger": "请查看空表、超出表范围的键、错误的 search_path、行级安全、规则或触发器",
    "the rate was too high: transactions that were due were never begun, and the latencies leave them out": "速率过高:有到期的事务未能"
    "开始,延迟中不含它们",
    "use a lower --rate, or more --clients if they were all busy": "降低 --rate;若连接全忙则增加 --clients",
    "some transactions had not ended when the run did, and the latencies leave them out": "有事务在运行结束时尚未完成,延迟中不含它们",
    "find out what they waited for (locks, a stalled disk); use a longer --duration": "查明其等待的原因(锁、磁盘停顿);使用更长的 "
    "--duration",
    "some transactions failed": "有事务失败",
    "the SQLSTATEs are in the table of outcomes; events.jsonl has the messages": "SQLSTATE 见异常表;消息见 events.jsonl",
    "a pooler of connections was between client and server: its part of the latency, and of the limit, is not the server's": "客户端与服务器之间有连接池:其延迟和上限不属于服务器",
    "measure without it as well (--target the server's own port): the difference is the pooler's": "也请直连服务器(--target 指向服务器端口)测一次,两者之差属于连接池",
    "connections were lost, or were out during the measurement": "测量期间有连接断开",
    "the time series shows when; see events.jsonl": "时间见时间序列;另见 events.jsonl",
    "the fate of some transactions is unknown: the connection was lost before the answer to a commit": "部分事务的结果未知:提交的应答之前"
    "连接已断开",
    "compare with the server's own counters": "请与服务器自身的计数对照",
    "the beginning of the measurement was still warm-up, and was left out": "测量开始时仍在预热,该部分已去除",
    "use a longer --warmup, or --warmup steady": "使用更长的 --warmup,或 --warmup steady",
    "the throughput, or the latency of an open loop, never became steady: it rose or fell throughout": "吞吐始终未稳定:整个测量期间持续上升或下降",
    "use a longer --warmup and --duration; find out what grows (tables, cache, checkpoints)": "使用更长的 --warmup 和 --duration;查明"
    "什么在增长(表、缓存、检查点)",
    "the experiment was made smaller than it is written (--shrink)": "实验规模小于其定义(--shrink)",
    "its figures are of a toy; run it in full for figures to publish": "数据仅供参考;用于发布请按原规模运行",
    "the tables were not consistent afterwards: transactions were lost, done twice or in part": "试验后表不一致:有事务丢失、重复或只执行了一部分",
    "the table of conditions says which; is it a failing disk, fsync = off, or another session that writes?":
    "违反了哪些条件见一致性表;请检查磁盘故障、fsync = off,或是否有其他会话写入",
    "the tables could not be checked afterwards": "试验后未能检查表的一致性",
    "events.jsonl of the trial has the reason; pgdyno tpcc check does it now": "原因见该试验的 events.jsonl;可用 pgdyno tpcc check 补做",
    "the run was interrupted: what is shown is what was measured until then": "运行被中断:显示的是中断前测得的结果",
    "run it again": "请重新运行",
    "a trial could not be finished": "有试验未能完成",
    "its error is shown with it": "错误信息与该试验一同列出",
    "what was to be done before each trial (CHECKPOINT, VACUUM) was refused or failed": "试验前要做的操作(CHECKPOINT、VACUUM)被拒绝或失败",
    "events.jsonl of the trial has the reason; give the role what it needs, or leave it out of the experiment": "原因见该试验的 "
    "events.jsonl;授予所需权限,或从实验中去掉",
    "part of the server's state could not be read": "服务器的部分状态无法读取",
    "see `not_recorded` in manifest.json": "见 manifest.json 中的 `not_recorded`",
    "the data fit into the server's buffers: the disk was hardly read": "数据可全部放入服务器缓冲区:几乎没有读磁盘",
    "use a larger --scale to measure the storage": "要测量存储,请使用更大的 --scale",
    # Environment.
    "server": "服务器", "connection": "连接", "client machine": "客户端机器", "kernel": "内核", "storage": "存储",
    "each trial": "每次试验", "after": "依据", "not recorded": "未记录", "not known (remote)": "未知(远程)",
}  # fmt: skip
#: Texts with figures in them.
PATTERNS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"Asynchronous standbys leave ([\d,.]+) TPS(.*?); commits that wait for a standby do (.*) of that\.", r"异步备库下为 \1 TPS\2;提交等待备库时为其 \3。"),
    (r"(\d+) s", r"\1 秒"), (r"(\d+) min", r"\1 分钟"), (r"(\d+) h", r"\1 小时"), (r"(\d+) days", r"\1 天"),
    (r"within (\S+%) of each other", r"相差在 \1 以内"),
    (r"not yet known \((\S+) (\w+)\)", lambda m: f"尚不可知({_span(m[1], m[2])})"),
    (r"faster, within (\S+%)", r"更快,但在 \1 以内"), (r"slower, within (\S+%)", r"更慢,但在 \1 以内"),
    (r"less, within (\S+%)", r"更少,但在 \1 以内"), (r"more, within (\S+%)", r"更多,但在 \1 以内"),
    (r"(\S+) to (\S+) times", r"\1 至 \2 倍"), (r"(\S+%) to (\S+%)", r"\1 至 \2"),
    (r"(\S+%) to (\S+) times", r"\1 至 \2 倍"),
    (r"(.+) is at least (\S+) times as fast as (.+?) \((.+?)\)(.*)\.",
     lambda m: f"{m[1]} 的速度至少是 {m[3]} 的 {m[2]} 倍({configuration(m[4])}){_rest(m[5])}。"),
    (r"(.+) is at least (\S+) (faster|slower) than (.+?) \((.+?)\)(.*)\.",
     lambda m: f"{m[1]} 比 {m[4]} 至少{'快' if m[3] == 'faster' else '慢'} {m[2]}({configuration(m[5])}){_rest(m[6])}。"),
    (r"(.+) is (\S+) to (\S+) times as fast as (.+?) \((.+?)\)(.*)\.",
     lambda m: f"{m[1]} 的速度是 {m[4]} 的 {m[2]} 至 {m[3]} 倍({configuration(m[5])}){_rest(m[6])}。"),
    (r"(.+) is (\S+) to (\S+) (faster|slower) than (.+?) \((.+?)\)(.*)\.",
     lambda m: f"{m[1]} 比 {m[5]} {'快' if m[4] == 'faster' else '慢'} {m[2]} 至 {m[3]}({configuration(m[6])}){_rest(m[7])}。"),
    (r"(.+) and (.+) are within (\S+%) of each other \((.+?)\)(.*)\.",
     lambda m: f"{m[1]} 与 {m[2]} 相差在 {m[3]} 以内({configuration(m[4])}){_rest(m[5])}。"),
    (r"Not yet known whether (.+) is faster or slower than (.+?) \((.+?)\)(?:: between (\S+) and (.+?))?"
     r"(?:; about (\d+) (\w+) more would tell)?\.",
     lambda m: f"尚不能判断 {m[1]} 比 {m[2]} 快还是慢({configuration(m[3])})"
     + (f":在 {m[4]} 与 {m[5].replace(' times', ' 倍')} 之间" if m[4] else "")
     + (f";再测约 {_span(m[6], m[7])}可知" if m[6] else "") + "。"),
    (r"(\d+) more comparisons: (.+)\.", lambda m: f"其余 {m[1]} 项对比:{_counted(m[2])}。"),
    (r"(\d+) more in the tables\.", r"另有 \1 项见下表。"),
    (r"(\S+)( ±\S+)? new orders a minute \((.+?), (without waits|at the standard's pace|with scaled waits), (.+)\)"
     r"(?:: (\S+) of what these can ask for)?\. TPC-C-like, not audited\.",
     lambda m: f"每分钟 {m[1]}{m[2] or ''} 个新订单({m[3]},"
     + {"without waits": "无等待", "at the standard's pace": "按标准节奏", "with scaled waits": "按比例等待"}[m[4]]
     + f",{_warehouses(m[5])})"
     + (f",为这些终端上限的 {m[6]}" if m[6] else "") + "。类 TPC-C,未经审计。"),
    (r"The tables are not consistent: TPC-C's conditions? (.+) did not hold after a trial\.",
     r"表不一致:试验后 TPC-C 条件 \1 不成立。"),
    (r"(\S+)(?: over (\S+) of the rows)?: (\S+) (TPS|rows/s)( ±\S+| \(\S+ to \S+ in \d+ trials\))?(?:, p99 (\S+) ms)? with (\S+) clients?"
     r"(?:; (\d+) already give (\d+)% of that)?\.",
     lambda m: f"{_named(m[1])}{f'(热数据 {m[2]})' if m[2] else ''}:{m[7]} 个连接时 {m[3]} {'行/秒' if m[4] == 'rows/s' else m[4]}"
     + re.sub(r"\((\S+) to (\S+) in (\d+) trials\)", r"(\3 次试验:\1 至 \2)", m[5] or "") + (f",p99 {m[6]} 毫秒" if m[6] else "") + (f";{m[8]} 个连接已达其 {m[9]}%" if m[8] else "") + "。"),
    (r"(.+): no one figure holds: (?:throughput (fell|rose) from (\S+) to (\S+) TPS after (\S+) s)?(?:, and )?"
     r"(?:nothing was committed for (\S+) s, from (\S+) s on)? \((\d+) of (\d+) trials?\)\.",
     lambda m: f"{configuration(m[1])}:没有单一数值能够代表:" + ",且".join(filter(None, [
         f"{m[5]} 秒后吞吐由 {m[3]} {'降' if m[2] == 'fell' else '升'}至 {m[4]} TPS" if m[2] else "",
         f"从第 {m[7]} 秒起有 {m[6]} 秒没有任何提交" if m[6] else ""])) + f"({m[9]} 次试验中的 {m[8]} 次)。"),
    (r"(\d+) more configurations have no one level\.", r"另有 \1 个配置没有单一水平。"),
    (r"(\S+): no transaction was committed\.", lambda m: f"{_named(m[1])}:没有提交任何事务。"),
    (r"Work that was not done is counted: (.+) found or changed no row in (\d+)% of its (\S+) executions \((.+)\)\.",
     r"计入了并未做成的工作:\1 执行 \3 次,其中 \2% 未读到或未改动任何行(\4)。"),
    (r"(.+) could not be judged: a defect of pgdyno, please report it: (.+)", r"\1 无法判断:pgdyno 的缺陷,请报告:\2 (\1 could not be judged)"),
    (r"(.+) could not be judged: nothing was recorded of (.+)", r"\1 无法判断:未记录 \2 (\1 could not be judged)"),
    (r"95% of the trials hold (.+?) at (\S+) transactions per second \((\S+) to (\S+)\), half of them at (\S+) "
     r"\((\S+) to (\S+); (\S+) intervals; (.+), (\d+) trials\); a closed loop reaches (\S+) TPS\.",
     lambda m: f"每秒 {m[2]} 个事务({m[3]} 至 {m[4]})时 95% 的试验满足 {m[1]},每秒 {m[5]} 个({m[6]} 至 {m[7]})时半数满足"
     f"({m[8]} 区间;{configuration(m[9])},{m[10]} 次试验);闭环可达 {m[11]} TPS。"),
    (r"Half of the trials hold (.+?) at (\S+) transactions per second \((\S+) interval: (\S+) to (\S+)\)(?:, 95% of them at (\S+)/s)? "
     r"\((.+), (\d+) trials\); a closed loop reaches (\S+) TPS\.",
     lambda m: f"每秒 {m[2]} 个事务时半数试验满足 {m[1]}({m[3]} 区间:{m[4]} 至 {m[5]})" + (f",每秒 {m[6]} 个时 95% 满足" if m[6] else "")
     + f"({configuration(m[7])},{m[8]} 次试验);闭环可达 {m[9]} TPS。"),
    (r"Not yet known how much holds (.+) \((.+)\): up to (\S+)/s every trial held it, and none was tried that does not\.",
     lambda m: f"尚不知道多大速率满足 {m[1]}({configuration(m[2])}):到每秒 {m[3]} 个为止全部满足,尚未试到不满足的速率。"),
    (r"(\S+) transactions per second hold (.+) \(a closed loop reaches (\S+) TPS\)\.", r"每秒 \1 个事务时满足 \2(闭环可达 \3 TPS)。"),
    (r"No rate held (.+) \((.+)\); a closed loop reaches (\S+) TPS\.", r"没有速率满足 \1(\2);闭环可达 \3 TPS。"),
    (r"Not monotone: (\S+)/s failed, (\S+)/s held; something else than the rate decides, too\.",
     r"并非单调:\1/秒 不满足,\2/秒 满足;除速率外另有因素。"),
    (r"At the rate that is given half of the trials hold (.+); (\S+) interval by all of them, of this server as it was "
     r"started\.", r"在给出的速率下半数试验满足 \1;\2 区间取自全部试验,仅就服务器的这次启动而言。"),
    (r"Trials were run (in random order|in turn|one configuration after the other), so many of each: (\d+)\.",
     lambda m: f"试验{'按随机顺序' if 'random' in m[1] else '轮流' if m[1] == 'in turn' else '按配置依次'}进行,每种 {m[2]} 次。"),
    (r"Change: (\S+) interval of the ratio, for these two servers as they run now, caches and all\.",
     r"变化:比值的 \1 区间,就这两台服务器目前的状态而言。"),
    (r"Change: (\S+) interval of the ratio of geometric means over n (repetitions|starts of the server)(, which are compared "
     r"within their round)?; how far they lie apart is learned from all configurations\.",
     lambda m: f"变化:n 次{'重复' if m[2] == 'repetitions' else '服务器启动'}的几何均值之比的 {m[1]} 区间{',同一轮内相互比较' if m[3] else ''};离散程度由全部配置共同估计。"),
    (r"Not yet known: it could be no difference, and it could be one of (\S+); in brackets the measuring time that would "
     r"tell, nine times in ten\.", r"尚不可知:可能没有差异,也可能相差 \1;括号中为得出结论(十有八九)所需的测量时间。"),
    (r"Change: (\S+) interval of the ratio, for these two starts of the servers only; --restarts 5 makes it hold for "
     r"the next\.", r"变化:比值的 \1 区间,仅就服务器的这两次启动而言;--restarts 5 可推广到下一次启动。"),
    (r"Change: (\S+) interval of the ratio, over (\d+) starts of both servers, so it holds for the next start too\.",
     r"变化:比值的 \1 区间,取自两台服务器的 \2 次启动,因此对下一次启动同样成立。"),
    (r"(\d+) of (\d+) trials were not finished; the verdicts stand on the others\.", r"\2 次试验中有 \1 次未完成;结论仅依据其余试验。"),
    (r"(.+)%? or (more|less)", lambda m: f"{m[1].replace(' times', ' 倍')} {'以上' if m[2] == 'more' else '以下'}"),
    (r"What would tell more: the same with (.+) \(about (\d+) (\w+)\)\.",
     lambda m: f"要知道得更多:以 {m[1]} 再测(约 {_span(m[2], m[3])})。"),
    (r"A difference, if there is one, is below what this machine can tell in an hour: less than (\S+)\.",
     r"即使有差异,也低于本机一小时内所能分辨的程度:小于 \1。"),
    (r"What would tell: the same with (.+)\.", r"要得出结论:以 \1 再测。"),
    (r"With (\S+) = (\S+) a crash can (lose the last commits|destroy the cluster|leave torn pages); that is not "
     r"measured here\.", lambda m: f"{m[1]} = {m[2]} 时,崩溃可能{_RISKS[m[3]]};此处未作测量。"),
    (r"Compared: (.+): (.+) by (.+)", r"对比:\1:\2 与 \3"),
    (r"Highest rate that held (.+) twice: (\S+) TPS\.", r"两次满足 \1 的最高速率:\2 TPS。"),
    (r"A closed loop reaches (\S+) TPS\.", r"闭环可达 \1 TPS。"),
    (r"(\d+) of (\d+) trials", r"\2 次试验中的 \1 次"),
    (r"PostgreSQL (\S.*), (\S+), (\d+) of (\S+) trials, still under way", r"PostgreSQL \1,\2,\4 次试验已完成 \3 次,仍在进行"),
    (r"PostgreSQL (\S.*), (\S+), (\d+) of (\S+) trials", r"PostgreSQL \1,\2,\4 次试验完成 \3 次"),
    (r"it was cut off \(killed\?\): (\d+) of (\S+) trials were finished", r"运行被切断(被杀?):\2 次试验完成 \1 次"),
    (r"(\d+) of (\d+) configurations are drawn\.", r"共 \2 个配置,图中为 \1 个。"),
    (r"Only the first (\d+) of (\d+) pairs are shown\.", r"仅显示前 \1 对(共 \2 对)。"),
    (r"Of the intervals of (\S+) s of all repetitions\.", r"取全部重复中每 \1 秒一个的区间。"),
    (r"([\d.]+) s warm-up, ([\d.]+) s measured, (\w+) protocol, closed loop, (\d+) repetitions, (.*), seed (\d+)",
     r"预热 \1 秒,测量 \2 秒,\3 协议,闭环,重复 \4 次,种子 \6"),
    (r"Beside each other: (.+)", r"并列对比:\1"), (r"loading (.+)", r"加载 \1"),
    (r"(generate|keys|vacuum|create|start|check|copy|restore) \((\S+) s\)", r"\1(\2 秒)"),
    (r"(.+), (.+) with indexes", r"\1,含索引 \2"),
    (r"(.+), (\S+) cores, (.+)", r"\1,\2 核,\3"),
    (r"fio on a file of (.+): (\d+) threads, (\S+) s each, pages of 8 kB, 65% reads\.",
     r"fio,文件 \1:\2 线程,每项 \3 秒,8 kB 页,65% 读。"),
    (r"place: (.+)", r"位置:\1"),
)  # fmt: skip
