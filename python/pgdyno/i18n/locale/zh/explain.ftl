# pgdyno explain 与吞吐下降。

role-limit = 瓶颈
role-largest = 繁忙客户端时间的主要去向
role-also = 另外
role-trouble = 可改进之处
explain-cost = 影响
explain-seen = 依据
explain-try = 建议
explain-nothing = 没有突出的原因；已检查 { $n } 项。
explain-not-collected = 其试验期间没有采集：旧版本，run.collect = []，或服务器拒绝。试验的 events.jsonl 列出未能记录的内容。
explain-more = 显示 { $all } 个配置中的 { $shown } 个；全部显示：{ $command }
dip = 试验 { $trial } 的吞吐下降，{ $begin } 至 { $end } 秒：吞吐低 { $loss }；{ $why }
dip-unexplained = 未见原因
dips-more = … 试验 { $trial } 还有 { $n } 次下降：--json
dip-foreign-lock = 其他会话持有的锁
dip-row-locks = 行锁
dip-command = 其他会话的 { $command }
dip-checkpoint = 检查点
dip-autovacuum = autovacuum
dip-device = 设备繁忙
dip-steal = 虚拟机管理器占去 CPU
dip-others = 其他进程占用 CPU
dip-waits = 等待 { $wait }
dip-event = { $event }
dip-freeze = 所有客户端最长 { $time } 没有得到回答

why = 原因：{ $states }，每事务由 { $a } 变为 { $b }{ $uses }。
why-of = 原因（{ $label }）：{ $states }，每事务由 { $a } 变为 { $b }{ $uses }。
why-uses = ；{ $uses }
why-no-state = 没有突出的状态
why-more = { $state }增加 { $change }（{ $a } 至 { $b }）
why-less = { $state }减少 { $change }（{ $a } 至 { $b }）
why-use = { $what } { $a } 变为 { $b }
state-cpu = 在 CPU 上
state-outside = 在网络和客户端
state-wait = 等待 { $wait }
use-wal = WAL
use-whole-pages = WAL 中的整页
use-whole-share = WAL 中整页的占比
use-pages-missed = 缺页
use-device-read = 读设备
use-device-written = 写设备
use-device-requests = 设备请求
use-temporary = 临时文件
