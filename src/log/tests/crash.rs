//! The log on a disk that loses power: at every operation of short workloads, at some operation
//! of many long ones, and while it recovers.

use super::workload::Workload;
use crate::disk::sim::Dice;

/// How many seeds a test runs: `few`, and more in long runs.
fn seeds(few: u64) -> u64 {
    few * u64::from(crate::times())
}

/// Runs until the power goes at `operation`, then recovers, losing power once more meanwhile
/// where `again` says so, and works on.
fn crash_at(seed: u64, operation: u64, (reaches, again): (bool, Option<u64>)) {
    let mut work = Workload::new(seed);
    work.disk.power_off_at(operation, reaches);
    let _went = work.open().and_then(|()| work.run(40));
    work.crash();
    if let Some(after) = again {
        work.disk.power_off_at(work.disk.operations() + after, !reaches);
        let _opened = work.open();
        work.crash();
    }
    work.open().expect("recovered");
    work.run(10).expect("works on");
    work.crash();
    work.open().expect("recovered again");
}

/// Operations of a workload that ends by itself.
fn operations(seed: u64, steps: u64) -> u64 {
    let mut work = Workload::new(seed);
    work.open().expect("open");
    work.run(steps).expect("ran");
    work.disk.operations()
}

fn told<T>(what: &str, run: impl FnOnce() -> T + std::panic::UnwindSafe) -> T {
    std::panic::catch_unwind(run).unwrap_or_else(|panic| {
        eprintln!("this was {what}");
        std::panic::resume_unwind(panic)
    })
}

#[test]
fn a_log_survives_a_loss_of_power_at_every_operation() {
    for seed in 0..seeds(2) {
        for operation in 2..operations(seed, 40) {
            for reaches in [false, true] {
                told(&format!("seed {seed}, operation {operation}, reaches {reaches}"), || {
                    crash_at(seed, operation, (reaches, None));
                });
            }
        }
    }
}

#[test]
fn a_recovery_that_loses_power_itself_loses_nothing() {
    for seed in 0..seeds(20) {
        let mut dice = Dice::new(seed ^ 0xf00d);
        let operation = 2 + dice.below(operations(seed, 40) - 2);
        for again in 0..12 {
            let how = (dice.chance(50), Some(again));
            told(&format!("seed {seed}, operation {operation}, {how:?}"), || {
                crash_at(seed, operation, how);
            });
        }
    }
}

#[test]
fn a_log_survives_many_losses_of_power_one_after_the_other() {
    for seed in 0..seeds(40) {
        told(&format!("seed {seed}"), || {
            let mut work = Workload::new(seed);
            let mut dice = Dice::new(seed ^ 0xbeef);
            for _ in 0..8 {
                let at = work.disk.operations() + dice.below(400);
                work.disk.power_off_at(at, dice.chance(50));
                let _went = work.open().and_then(|()| work.run(100));
                work.crash();
            }
            work.open().expect("recovered");
        });
    }
}
