//! The result of a slot as JSON. `schema/result.v1.schema.json` describes it for others.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::Serialize;

use super::layers::{self, Http2, TlsUse};
use crate::engine::{EndedBy, Measured, Plan, Usage, Window};
use crate::order::{KeepAlive, Loop, Protocol};
use crate::record::{Beside, Failure, FailureCounts, Recorder, Timing, rounded};

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
    pub protocol: Protocol,
    pub ended_by: &'static str,
    pub lead_in_s: f64,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_handshake_us: Option<Times>,
    pub send_lag_us: Lag,
    pub client: Client,
    pub windows: Vec<Window>,
    pub whole: Whole,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2: Option<Http2>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_readers: Option<SlowReading>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_connections: Option<Idle>,
}

/// Lead-in, window and what followed until nothing was on its way: what costs are divided by, and
/// what has to be valid.
#[derive(Debug, Clone, Serialize)]
pub struct Whole {
    pub length_s: f64,
    pub sent: u64,
    pub completed: u64,
    pub by_status: BTreeMap<String, u64>,
    pub failures: BTreeMap<&'static str, u64>,
    pub failure_samples: Vec<String>,
    pub bytes: Bytes,
    pub connections: Connections,
    pub server_closed: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Requests {
    pub sent: u64,
    pub completed: u64,
    /// On their way when the window began.
    pub carried: u64,
    pub unanswered: u64,
    /// Of the unanswered, those answered validly after the end.
    pub drained: u64,
    /// Open loop: due, but not sent before the end.
    pub unsent: u64,
    /// Open loop: due, and dropped because too many waited for a free connection.
    pub dropped: u64,
    /// Open loop: the most that waited at a time.
    pub most_waiting: u64,
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
    pub per_thread: Vec<ThreadUse>,
    /// Windows, and those of them in which the client was the limit.
    pub windows: usize,
    pub bound_windows: usize,
    /// Those are left out of times and rate.
    pub bound_left_out: bool,
    /// Windows in which a thread stood still, and for how long; always left out.
    pub still_windows: usize,
    pub stood_still_s: f64,
    /// How many windows were left out; none when all would have to be.
    pub left_out_windows: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct ThreadUse {
    pub cpu_user_s: f64,
    pub cpu_sys_s: f64,
    pub busy: f64,
    pub run_queue_s: f64,
}

/// Connections that read slowly, beside the load.
#[derive(Debug, Clone, Serialize)]
pub struct SlowReading {
    pub connections: u32,
    pub bytes_per_s: u32,
    pub sent: u64,
    pub completed: u64,
    pub failed: u64,
    pub body_bytes: u64,
}

/// Connections held open, beside the load.
#[derive(Debug, Clone, Serialize)]
pub struct Idle {
    pub asked: u32,
    /// Answered and open at the end.
    pub held: u64,
    /// Requests on them without a valid answer.
    pub failed: u64,
    /// Closed by the server, and opened again.
    pub server_closed: u64,
    pub connect_failures: u64,
    pub failure_samples: Vec<String>,
}

impl SlotResult {
    pub fn new(plan: &Plan, measured: &Measured) -> Self {
        let (order, recorder) = (&plan.order, &measured.recorder);
        SlotResult {
            schema: SCHEMA,
            id: order.id.clone(),
            target: plan.targets.join(", "),
            kind: order.load.kind,
            protocol: order.load.protocol,
            ended_by: ended_by(measured.ended_by),
            lead_in_s: order.lead_in_s,
            measured_s: rounded(measured.measured_s, 6),
            drain_s: rounded(measured.drain_s, 6),
            requests: requests(measured),
            by_status: by_status(recorder),
            failures: failures(&recorder.failures),
            failure_samples: recorder.samples.iter().cloned().collect(),
            bytes: bytes(recorder),
            connections: connections(recorder),
            keepalive: KeptAlive {
                asked: order.load.keepalive,
                server_closed: recorder.server_closed,
            },
            rate_rps: rounded(measured.rate_rps, 3),
            response_time_us: times(&measured.response_time),
            service_time_us: times(&recorder.service_time()),
            first_byte_time_us: times(&recorder.first_byte_time()),
            connect_time_us: times(&recorder.connect),
            tls_handshake_us: layers::handshakes(plan, recorder).map(|timing| times(&timing)),
            send_lag_us: lag(&recorder.lag),
            client: client(measured, order.leave_out_client_bound),
            windows: measured.windows.clone(),
            whole: whole(measured),
            tls: layers::tls(plan, recorder),
            http2: layers::http2(plan, recorder),
            slow_readers: slow_readers(plan, &measured.beside.slow),
            idle_connections: idle_connections(plan, &measured.beside),
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

fn requests(measured: &Measured) -> Requests {
    let (recorder, leftover) = (&measured.recorder, &measured.leftover);
    Requests {
        sent: recorder.sent,
        completed: recorder.completed,
        carried: recorder.carried,
        unanswered: recorder.unanswered,
        drained: recorder.drained,
        unsent: leftover.waiting,
        dropped: leftover.dropped,
        most_waiting: leftover.most_waiting,
    }
}

fn whole(measured: &Measured) -> Whole {
    let recorder = &measured.whole;
    Whole {
        length_s: rounded(measured.whole_s, 6),
        sent: recorder.sent,
        completed: recorder.completed,
        by_status: by_status(recorder),
        failures: failures(&recorder.failures),
        failure_samples: recorder.samples.iter().cloned().collect(),
        bytes: bytes(recorder),
        connections: connections(recorder),
        server_closed: recorder.server_closed,
    }
}

fn bytes(recorder: &Recorder) -> Bytes {
    Bytes { head: recorder.head_bytes, body: recorder.body_bytes }
}

fn connections(recorder: &Recorder) -> Connections {
    Connections { opened: recorder.opened, reused_requests: recorder.reused }
}

fn by_status(recorder: &Recorder) -> BTreeMap<String, u64> {
    recorder.by_status.iter().map(|(status, count)| (status.to_string(), count)).collect()
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

fn lag(timing: &Timing) -> Lag {
    Lag { p50: timing.quantile_us(0.5), p99: timing.quantile_us(0.99), max: timing.max_us() }
}

fn client(measured: &Measured, leave_out: bool) -> Client {
    let usage = &measured.usage;
    let windows = measured.windows.iter().filter(|window| !window.lead_in);
    let sum = |of: fn(&Usage) -> f64| usage.iter().map(of).sum::<f64>();
    let busy = |cpu_s: f64, threads: usize| {
        rounded((cpu_s / (measured.measured_s * threads as f64).max(1e-9)).min(1.0), 4)
    };
    let per_thread = usage.iter().map(|thread| ThreadUse {
        cpu_user_s: rounded(thread.cpu_user_s, 6),
        cpu_sys_s: rounded(thread.cpu_sys_s, 6),
        busy: busy(thread.cpu_s(), 1),
        run_queue_s: rounded(thread.run_queue_s, 6),
    });
    Client {
        threads: usage.len(),
        cpu_user_s: rounded(sum(|u| u.cpu_user_s), 6),
        cpu_sys_s: rounded(sum(|u| u.cpu_sys_s), 6),
        busy: busy(sum(Usage::cpu_s), usage.len()),
        run_queue_s: rounded(sum(|u| u.run_queue_s), 6),
        per_thread: per_thread.collect(),
        windows: windows.clone().count(),
        bound_windows: windows.clone().filter(|window| window.client_bound).count(),
        bound_left_out: leave_out,
        still_windows: windows.clone().filter(|window| window.stood_still).count(),
        stood_still_s: rounded(windows.map(|window| window.still_s).sum(), 6),
        left_out_windows: measured.left_out_windows,
    }
}

fn slow_readers(plan: &Plan, recorder: &Recorder) -> Option<SlowReading> {
    let slow = plan.order.load.slow_readers?;
    Some(SlowReading {
        connections: slow.connections,
        bytes_per_s: slow.bytes_per_s,
        sent: recorder.sent,
        completed: recorder.completed,
        failed: recorder.failures.of_sent(),
        body_bytes: recorder.body_bytes,
    })
}

fn idle_connections(plan: &Plan, beside: &Beside) -> Option<Idle> {
    let (asked, recorder) = (plan.order.load.idle_connections, &beside.idle);
    (asked > 0).then(|| Idle {
        asked,
        held: beside.idle_held,
        failed: recorder.failures.of_sent(),
        server_closed: recorder.server_closed,
        connect_failures: recorder.failures.get(Failure::Connect),
        failure_samples: recorder.samples.iter().cloned().collect(),
    })
}
