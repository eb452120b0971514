//! When requests are due.

use std::num::NonZeroU32;

use crate::order::bounds::{HIGHEST_RATE, LONGEST_SLOT_S, MOST_AT_ONCE, MOST_CLIENTS, between};
use crate::order::{Arrivals, KeepAlive, Load, Share, Stage, Unit};

pub fn check(arrivals: &Arrivals, load: &Load) -> Result<(), String> {
    ensure!(
        arrivals.stages.is_empty() != arrivals.times_s.is_empty(),
        "stages: give either stages or times_s"
    );
    let burst = arrivals.burst.map_or(1, NonZeroU32::get);
    ensure!(burst <= MOST_AT_ONCE, "burst: {burst} is not a number from 1 to {MOST_AT_ONCE}");
    ensure!(
        burst == 1 || !arrivals.stages.is_empty(),
        "burst: times_s say what is due at once; leave it out"
    );
    let sensible = |time_s: &f64| (0.0..=LONGEST_SLOT_S.into()).contains(time_s);
    ensure!(
        arrivals.times_s.is_sorted() && arrivals.times_s.iter().all(sensible),
        "times_s: must ascend from 0 and stay below {LONGEST_SLOT_S}"
    );
    for (index, stage) in arrivals.stages.iter().enumerate() {
        let last = index + 1 == arrivals.stages.len();
        check_stage(stage, last).map_err(|message| format!("stages[{index}].{message}"))?;
    }
    ensure!(
        arrivals.unit == Unit::Request || load.keepalive != KeepAlive::Always,
        "unit: connections that never end can't be due again and again; set keepalive to \"never\" \
         or a number of requests"
    );
    ensure!(
        !arrivals.each_connection || !arrivals.stages.is_empty() && arrivals.share.is_none(),
        "each_connection: it has stages, whose rates are those of one connection, and no share"
    );
    ensure!(
        !arrivals.each_connection || arrivals.unit == Unit::Request && load.streams.is_none(),
        "each_connection: a connection sends one request at a time; leave out unit and streams"
    );
    ensure!(
        !arrivals.each_connection || load.send_delay_budget_s == 0.0,
        "each_connection: what is due on one connection can't wait for others; leave out \
         send_delay_budget_s"
    );
    ensure!(arrivals.max_backlog > 0, "max_backlog: must be at least 1");
    arrivals.share.map_or(Ok(()), check_share)
}

fn check_share(Share { of, index, .. }: Share) -> Result<(), String> {
    ensure!(
        (1..=MOST_CLIENTS).contains(&of),
        "share.of: {of} is not a number of clients between 1 and {MOST_CLIENTS}"
    );
    ensure!(
        index < of,
        "share.index: there is no client {index} among {of}; they count from 0 to {}",
        of - 1
    );
    Ok(())
}

fn check_stage(stage: &Stage, last: bool) -> Result<(), String> {
    for rate in [Some(stage.rate_per_s), stage.to_rate_per_s].into_iter().flatten() {
        between("rate_per_s", rate, 0.0, HIGHEST_RATE)?;
    }
    match stage.for_s {
        None if !last => Err("for_s: only the last stage may go on without an end".into()),
        None if stage.to_rate_per_s.is_some() => {
            Err("for_s: a rate that changes needs a length; give for_s".into())
        }
        None => Ok(()),
        Some(seconds) => between("for_s", seconds, f64::MIN_POSITIVE, LONGEST_SLOT_S),
    }
}
