//! Flags of the load as a whole.

use crate::cli::units::{self, CpuList};
use crate::order::bounds::{LONGEST_SLOT_S, LONGEST_TIMEOUT_S, LONGEST_WAIT_S};
use crate::order::{KeepAlive, ThinkDistribution};

#[derive(Debug, clap::Args)]
pub struct LoadFlags {
    /// Connections of the load: users with a request at a time each
    #[arg(short, long, value_name = "COUNT", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: u32,
    /// Length of the run: 500ms, 10s, 2m; a bare number is seconds [default: 10s, unless
    /// something else ends the run]
    #[arg(short = 'd', long, value_name = "TIME", value_parser = units::length::<LONGEST_SLOT_S>)]
    pub time: Option<f64>,
    /// Ramp-up: load before the run, which enters neither throughput nor latency: 500ms, 2s
    /// [default: none]
    #[arg(long, value_name = "TIME", value_parser = units::seconds::<LONGEST_SLOT_S>)]
    pub ramp_up: Option<f64>,
    /// Closed loop: connections begin one after the other over this time, and not all at once; a
    /// --ramp-up as long keeps that out of the result [default: at once]
    #[arg(long, value_name = "TIME", value_parser = units::seconds::<LONGEST_SLOT_S>,
          conflicts_with_all = ["timetable", "count"])]
    pub conn_ramp: Option<f64>,
    /// Number of requests to send; with --conn-rate, of connections [default: no limit]
    #[arg(short = 'n', long, value_name = "COUNT",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Threads, not pinned
    #[arg(short, long, value_name = "COUNT", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// CPUs to run on, one pinned thread on each: 0,2-3 [default: not pinned]
    #[arg(long, value_name = "LIST", value_parser = units::cpus,
          conflicts_with = "threads")]
    pub cpus: Option<CpuList>,
    /// Requests per connection: always (no limit), never (one), or a number [default: always]
    #[arg(long, value_name = "HOW", conflicts_with = "conn_rate")]
    pub keepalive: Option<KeepAlive>,
    /// Longest wait for a connection (connect timeout), and for a response to its end: 500ms, 5s; at
    /// most 1h [default: 5s; with --events 60s]
    #[arg(long, value_name = "TIME", value_parser = units::length::<LONGEST_TIMEOUT_S>)]
    pub timeout: Option<f64>,
    /// Closed loop: pause between a response and the next request: 10ms, 1s [default: none]
    #[arg(long, value_name = "TIME", value_parser = units::seconds::<LONGEST_WAIT_S>)]
    pub think: Option<f64>,
    /// How pauses spread around --think: constant or exponential [default: constant]
    #[arg(long, value_name = "HOW", value_enum, requires = "think")]
    pub think_distribution: Option<ThinkDistribution>,
    /// Time responses by when the kernel got them, not by when they were read, which is later by a
    /// wake-up; each costs a little more [default: only with --send-delay-budget]
    #[arg(long)]
    pub kernel_times: bool,
    /// Seed of all random choices
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub seed: u64,
}
