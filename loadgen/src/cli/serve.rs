//! `loadgen serve`: orders in, results out, line by line.

use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{process, thread};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::json;

use super::exit::{OK, Stop, print};
use super::signals;
use crate::ask::{Asker, Room};
use crate::calls::Calls;
use crate::cli::units;
use crate::engine::{Engine, Plan};
use crate::order::parse::{OrderError, parse};
use crate::order::{SCHEMA, Trace};
use crate::output::result::SlotResult;
use crate::output::trace::TracedAnswer;

/// What is longer is an endless stream, no page.
const MOST_BODY_BYTES: usize = 256 * 1024 * 1024;
const WHOLE: Room =
    Room { kept_bytes: MOST_BODY_BYTES, most_bytes: MOST_BODY_BYTES as u64, hashes: false };

/// Read one JSON order per line from standard input and answer each with one JSON line.
///
/// Connections stay open between orders. Ends at the end of standard input. A wrong order gets
/// {"schema": 2, "id": …, "error": "…"}, and the next one is read.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// CPUs to run on, one pinned thread on each (0,2-3)
    #[arg(long, value_parser = units::cpus, conflicts_with = "threads")]
    cpus: Option<units::CpuList>,
    /// Number of threads, not pinned [default: 1]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

pub fn main(args: &Args) -> Result<u8, Stop> {
    thread::spawn(end_without_reader);
    let idle = Arc::new(AtomicBool::new(true));
    let (mut engine, interrupt) =
        signals::engine(args.cpus.as_ref(), args.threads.unwrap_or(1), &idle)
            .map_err(|error| error.to_string())?;
    for line in io::stdin().lock().split(b'\n') {
        let line = line.map_err(|error| format!("standard input: {error}"))?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        idle.store(false, Ordering::SeqCst);
        print(&(answer(&mut engine, &line) + "\n"))?;
        idle.store(true, Ordering::SeqCst);
        if interrupt.load(Ordering::SeqCst) {
            return Ok(OK);
        }
    }
    Ok(OK)
}

/// Ends all of it once nobody can read an answer: who gave the orders was killed.
fn end_without_reader() {
    let output = io::stdout();
    // Whatever is asked for, it is told when the other end is closed.
    while let Err(Errno::INTR) = poll(&mut [PollFd::new(&output, PollFlags::empty())], None) {}
    process::exit(1);
}

fn answer(engine: &mut Engine, line: &[u8]) -> String {
    match outcome(engine, line) {
        Ok(result) => result,
        Err(error) => text(&json!({"schema": SCHEMA, "id": error.id, "error": error.message})),
    }
}

fn outcome(engine: &mut Engine, line: &[u8]) -> Result<String, OrderError> {
    let wrong = |error| OrderError { id: None, message: format!("the order is no text: {error}") };
    let mut order = parse(str::from_utf8(line).map_err(wrong)?)?;
    let id = order.id.clone();
    let fail = |message: String| OrderError { id: Some(id.clone()), message };
    let broken = |error: io::Error| fail(error.to_string());
    let shows = order.trace.is_some();
    let calls = Calls::prepare(&mut order, shows).map_err(&fail)?;
    let only_login = order.session.as_ref().is_some_and(|session| session.only_login);
    let plan = Arc::new(Plan::new(order).map_err(&fail)?);
    if only_login {
        engine.log_in(&plan).map_err(broken)?;
        let users = plan.order.load.connections;
        return Ok(text(&json!({"schema": SCHEMA, "id": id, "logged_in": users})));
    }
    if let Some(Trace { accepts_within_s }) = plan.order.trace {
        let accepts_within = Duration::from_secs_f64(accepts_within_s);
        let traced = trace(engine, &plan, &calls, accepts_within).map_err(fail)?;
        return Ok(text(&json!({"schema": SCHEMA, "id": id, "traced": traced})));
    }
    let measured = engine.run(&plan, &mut ()).map_err(broken)?;
    Ok(text(&SlotResult::new(&plan, &measured)))
}

/// Reports each response, as a line that its body follows; returns how many there are.
fn trace(
    engine: &mut Engine,
    plan: &Arc<Plan>,
    calls: &Calls,
    accepts_within: Duration,
) -> Result<usize, String> {
    let report = |answer: &TracedAnswer, body: &[u8]| {
        print([text(answer).as_bytes(), b"\n", body].concat()).map_err(|stop| stop.message)
    };
    if plan.sessions.is_some() {
        let traced = engine.trace(plan).map_err(|error| error.to_string())?;
        for answer in &traced {
            report(&TracedAnswer::new(plan, answer), &answer.body)?;
        }
        return Ok(traced.len());
    }
    let mut asker = Asker::new(plan, WHOLE);
    asker.accepts_within = accepts_within;
    for number in 0..plan.requests.len() {
        let mut seen = asker.ask(number);
        if seen.trouble.is_some() {
            seen.response.body.clear();
        }
        let json = calls.json(number, &seen.response.body).and_then(Result::ok);
        report(&TracedAnswer::seen(number, &seen, json), &seen.response.body)?;
    }
    Ok(plan.requests.len())
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
}
