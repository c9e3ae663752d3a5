# pgdyno explain, and dips.

role-limit = What limits it
role-largest = Where most of the busy clients' time goes
role-also = Also
role-trouble = What can be mended
explain-cost = cost
explain-seen = seen
explain-try = try
explain-nothing = No cause stands out; { $n } were checked.
explain-not-collected = Nothing was collected during its trials: an older version, run.collect = [], or the server refused. events.jsonl of a trial lists what could not be recorded.
explain-more = { $shown } of { $all } configurations are shown; for all of them: { $command }
dip = Dip of trial { $trial }, { $begin } to { $end } s: throughput { $loss } lower; { $why }
dip-unexplained = no observed cause
dips-more = … { $n } more dips of trial { $trial }: --json
dip-foreign-lock = a lock held by another session
dip-row-locks = row locks
dip-checkpoint = a checkpoint
dip-autovacuum = autovacuum
dip-device = a busy device
dip-steal = CPUs taken by the hypervisor
dip-others = other processes on the CPUs
dip-waits = waits for { $wait }
dip-event = { $event }
