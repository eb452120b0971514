//! A server of dialed cost, so that the true ratio of two of them is known.
//!
//! Each request costs exactly `--cost-us` of CPU time: before it answers, a worker spins until its
//! thread's CPU clock has advanced by that since the request before. Network, parsing and waking up
//! lie inside the dial, so n requests cost n times the dial as long as the dial is the larger one.
//! Of two such servers that are saturated, rate and CPU time per request have the ratio of the
//! dials. `--sleep-ms` makes slow pages: each request rests so long before it is worked on.
//! `--slow-start` makes the first requests dearer, fading with `--slow-start-s`.
//!
//! `--service-us` makes each worker a queue whose response times can be computed: one request after
//! the other, each served so long by the clock, all the same or (`--service exponential`)
//! exponentially distributed. Such requests cost next to nothing, so give them `--cost-us 0`. With
//! `--collapse-rps` a worker to which more come (in a tenth of a second) serves ten times as slowly
//! from then on, or until `--recover-s` after the last one that was too much: then it answers all
//! that waits at once. With `--shed-rps` it refuses what is more than that, at once and by a 503.
//! With `--stall-every-s` all workers stand still for `--stall-ms` at the end of each such period,
//! counted from the start. `--leak-bytes` keeps so much memory for each request, for ever, and
//! `--leak-bytes-per-s` so much in each second, whatever is asked. With `--dear-times` each start
//! draws, with the chance `--dear-share`, whether all its requests cost that many times as much.
//! One request at a time per connection, without a body. Scripts in `bench/` use it.

mod desk;
mod leak;
mod worker;

use std::error::Error;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use clap::{Parser, ValueEnum};

use desk::Desk;
use worker::Worker;

#[derive(Parser, Clone, Copy)]
#[command(about = "A server whose requests cost a known CPU time")]
struct Options {
    /// Where it listens.
    #[arg(long)]
    listen: SocketAddr,
    /// CPU time of each request, in microseconds.
    #[arg(long, value_parser = not_negative)]
    cost_us: f64,
    /// Each request rests so many milliseconds before it is worked on.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    sleep_ms: f64,
    /// Threads that work on requests; connections are dealt out to them in turn.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    workers: u16,
    /// Each worker serves one request at a time, for so many microseconds by the clock.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    service_us: f64,
    /// How the times of service are distributed.
    #[arg(long, value_enum, default_value_t = Service::Fixed)]
    service: Service,
    /// Requests per second, in a tenth of it, that a worker survives; none collapses at 0.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    collapse_rps: f64,
    /// A collapsed worker is as before so many seconds after the last request that was too much;
    /// never at 0.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    recover_s: f64,
    /// Requests per second, in a tenth of it, that a worker takes; it refuses the rest. 0 takes all.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    shed_rps: f64,
    /// At the start requests cost this share more; it fades exponentially.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    slow_start: f64,
    /// Seconds in which the slow start fades to 37 %.
    #[arg(long, default_value_t = 1.0, value_parser = not_negative)]
    slow_start_s: f64,
    /// Milliseconds for which all workers stand still at the end of each period.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    stall_ms: f64,
    /// Seconds from one stall to the next; none at 0.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    stall_every_s: f64,
    /// Bytes of memory that each request takes and never gives back.
    #[arg(long, default_value_t = 0)]
    leak_bytes: usize,
    /// Bytes of memory that are taken in each second and never given back, whatever is asked.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    leak_bytes_per_s: f64,
    /// Requests of a dear start cost so many times as much.
    #[arg(long, default_value_t = 1.0, value_parser = not_negative)]
    dear_times: f64,
    /// The share of starts that are dear.
    #[arg(long, default_value_t = 0.5, value_parser = not_negative)]
    dear_share: f64,
}

#[derive(ValueEnum, Clone, Copy, PartialEq)]
enum Service {
    Fixed,
    Exponential,
}

fn not_negative(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (0.0..f64::INFINITY).contains(&number) => Ok(number),
        _ => Err("not a number from 0".into()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = Options::parse();
    if fastrand::f64() < options.dear_share {
        options.cost_us *= options.dear_times;
    }
    if options.leak_bytes_per_s > 0.0 {
        thread::spawn(move || leak::go_on(options.leak_bytes_per_s));
    }
    let listener = TcpListener::bind(options.listen)?;
    let mut desks = Vec::new();
    for _ in 0..options.workers {
        let desk = Arc::new(Desk::new()?);
        desks.push(Arc::clone(&desk));
        thread::spawn(move || {
            if let Err(error) = Worker::new(options, desk).serve() {
                eprintln!("dialed_server: {error}");
                std::process::exit(1);
            }
        });
    }
    for (name, desk) in (0..).zip(desks.iter().cycle()) {
        let (socket, _) = listener.accept()?;
        desk.take(name, socket)?;
    }
    Ok(())
}
