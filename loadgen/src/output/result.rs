//! The result of a slot as JSON. `schema/result.v1.schema.json` describes it for others.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::Serialize;

use crate::engine::{EndedBy, Measured, Usage};
use crate::order::{KeepAlive, Loop, Order};
use crate::record::{Failure, FailureCounts, Recorder, Timing};

/// Version of the contract.
pub const SCHEMA: u32 = 1;

#[derive(Debug, Clone, Serialize)]
pub struct SlotResult {
    pub schema: u32,
    pub id: String,
    /// Scheme and host of each target.
    pub target: String,
    #[serde(rename = "loop")]
    pub kind: Loop,
    pub ended_by: &'static str,
    pub measured_s: f64,
    pub drain_s: f64,
    pub requests: Requests,
    pub by_status: BTreeMap<String, u64>,
    pub failures: BTreeMap<&'static str, u64>,
    pub failure_samples: Vec<String>,
    pub bytes: Bytes,
    pub connections: Connections,
    pub keepalive: KeptAlive,
    /// Completed and valid answers per second.
    pub rate_rps: f64,
    pub response_time_us: Times,
    pub service_time_us: Times,
    pub first_byte_time_us: Times,
    pub connect_time_us: Times,
    pub send_lag_us: Lag,
    pub client: Client,
}

#[derive(Debug, Clone, Serialize)]
pub struct Requests {
    pub sent: u64,
    pub completed: u64,
    pub unanswered: u64,
    pub drained: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Bytes {
    pub head: u64,
    pub body: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Connections {
    pub opened: u64,
    pub reused_requests: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct KeptAlive {
    pub asked: KeepAlive,
    pub server_closed: u64,
}

/// Microseconds; all 0 when there is no sample.
#[derive(Debug, Clone, Serialize)]
pub struct Times {
    pub count: u64,
    pub min: f64,
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
    /// HDR V2, compressed, base64; values are whole microseconds.
    pub histogram: String,
}

/// How late requests were sent, in microseconds; 0 in a closed loop, where nothing is due.
#[derive(Debug, Clone, Serialize)]
pub struct Lag {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Client {
    pub threads: usize,
    pub cpu_user_s: f64,
    pub cpu_sys_s: f64,
    /// Share of the threads' time spent on a CPU.
    pub busy: f64,
    /// Seconds in which a thread could run but had no CPU.
    pub run_queue_s: f64,
}

impl SlotResult {
    pub fn new(order: &Order, origins: &[String], measured: &Measured) -> Self {
        let recorder = &measured.recorder;
        let rate = recorder.completed as f64 / measured.measured_s.max(1e-9);
        SlotResult {
            schema: SCHEMA,
            id: order.id.clone(),
            target: origins.join(", "),
            kind: order.load.kind,
            ended_by: ended_by(measured.ended_by),
            measured_s: round(measured.measured_s, 6),
            drain_s: round(measured.drain_s, 6),
            requests: requests(recorder),
            by_status: by_status(recorder),
            failures: failures(&recorder.failures),
            failure_samples: recorder.samples.iter().cloned().collect(),
            bytes: Bytes { head: recorder.head_bytes, body: recorder.body_bytes },
            connections: Connections { opened: recorder.opened, reused_requests: recorder.reused },
            keepalive: KeptAlive {
                asked: order.load.keepalive,
                server_closed: recorder.server_closed,
            },
            rate_rps: round(rate, 3),
            response_time_us: times(&recorder.response_time()),
            service_time_us: times(&recorder.service_time()),
            first_byte_time_us: times(&recorder.first_byte_time()),
            connect_time_us: times(&recorder.connect),
            send_lag_us: Lag { p50: 0.0, p99: 0.0, max: 0.0 },
            client: client(&measured.usage, measured.measured_s),
        }
    }
}

fn ended_by(by: EndedBy) -> &'static str {
    match by {
        EndedBy::Duration => "duration",
        EndedBy::Count => "count",
        EndedBy::Interrupt => "interrupt",
        EndedBy::Unreachable => "unreachable",
    }
}

fn requests(recorder: &Recorder) -> Requests {
    Requests {
        sent: recorder.sent,
        completed: recorder.completed,
        unanswered: recorder.unanswered,
        drained: recorder.drained,
    }
}

fn by_status(recorder: &Recorder) -> BTreeMap<String, u64> {
    let seen = recorder.by_status.iter().enumerate().filter(|(_, count)| **count > 0);
    seen.map(|(status, count)| (status.to_string(), *count)).collect()
}

fn failures(counts: &FailureCounts) -> BTreeMap<&'static str, u64> {
    Failure::ALL.iter().map(|failure| (failure.name(), counts.get(*failure))).collect()
}

fn times(timing: &Timing) -> Times {
    Times {
        count: timing.count(),
        min: timing.min_us(),
        mean: timing.mean_us(),
        p50: timing.quantile_us(0.5),
        p90: timing.quantile_us(0.9),
        p99: timing.quantile_us(0.99),
        p99_9: timing.quantile_us(0.999),
        max: timing.max_us(),
        histogram: encode(timing),
    }
}

/// Encodes so that every HDR library can read it (Python: `HdrHistogram.decode`).
fn encode(timing: &Timing) -> String {
    let mut bytes = Vec::new();
    let encoded = Histogram::<u64>::new_with_bounds(1, 3_600_000_000, 3).ok().and_then(|mut us| {
        timing.values_us().for_each(|(value, count)| us.saturating_record_n(value, count));
        V2DeflateSerializer::new().serialize(&us, &mut bytes).ok()
    });
    debug_assert!(encoded.is_some(), "writing to memory does not fail");
    BASE64_STANDARD.encode(bytes)
}

fn client(usage: &[Usage], measured_s: f64) -> Client {
    let sum = |of: fn(&Usage) -> f64| usage.iter().map(of).sum::<f64>();
    let time_s = measured_s * usage.len() as f64;
    Client {
        threads: usage.len(),
        cpu_user_s: round(sum(|u| u.cpu_user_s), 6),
        cpu_sys_s: round(sum(|u| u.cpu_sys_s), 6),
        busy: round((sum(Usage::cpu_s) / time_s.max(1e-9)).min(1.0), 4),
        run_queue_s: round(sum(|u| u.run_queue_s), 6),
    }
}

fn round(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}
