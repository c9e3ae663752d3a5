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
dip-command = { $command } of another session
dip-checkpoint = a checkpoint
dip-autovacuum = autovacuum
dip-device = a busy device
dip-steal = CPUs taken by the hypervisor
dip-others = other processes on the CPUs
dip-waits = waits for { $wait }
dip-event = { $event }
dip-freeze = no client got an answer for up to { $time }

why = Why: { $states }, of { $a } to { $b } per transaction{ $uses }.
why-of = Why ({ $label }): { $states }, of { $a } to { $b } per transaction{ $uses }.
why-uses = ; { $uses }
why-no-state = no state stands out
why-more = { $change } more { $state } ({ $a } to { $b })
why-less = { $change } less { $state } ({ $a } to { $b })
why-use = { $what } { $a } to { $b }
state-cpu = on the CPUs
state-outside = in network and client
state-wait = in { $wait }
use-wal = WAL
use-whole-pages = whole pages in WAL
use-whole-share = WAL that is whole pages
use-pages-missed = pages missed
use-device-read = read from the device
use-device-written = written to the device
use-device-requests = device requests
use-temporary = temporary files
