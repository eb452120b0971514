//! The result of a slot as JSON. `schema/result.v2.schema.json` describes it for others.

use serde::{Deserialize, Serialize};

use super::times::TimeSummary;
use crate::engine::{EndedBy, Measured, Plan, Usage, Window};
use crate::order::{KeepAlive, Loop, Protocol, SCHEMA, Tls};
use crate::record::{
    Counts, Endpoint, Failure, HandshakeCounts, OtherConnections, RequestCounts, Samples, Seen,
    StreamCounts, rounded,
};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SlotResult {
    pub schema: u32,
    pub id: String,
    /// Scheme and host of each target.
    pub target: String,
    #[serde(rename = "loop")]
    pub kind: Loop,
    pub protocol: Protocol,
    pub ended_by: EndedBy,
    pub ramp_up_s: f64,
    pub measured_s: f64,
    pub tail_s: f64,
    pub drain_s: f64,
    pub requests: RequestCounts,
    #[serde(flatten)]
    pub seen: Seen,
    pub keepalive: KeptAlive,
    /// Completed and valid answers per second.
    pub throughput_rps: f64,
    pub latency_us: TimeSummary,
    pub service_time_us: TimeSummary,
    pub first_byte_time_us: TimeSummary,
    pub connect_time_us: TimeSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_handshake_us: Option<TimeSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub websocket_handshake_us: Option<TimeSummary>,
    pub send_delay_us: SendDelay,
    pub client: Client,
    pub windows: Vec<Window>,
    pub whole: Whole,
    /// By name, where the order names any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<EndpointUse>,
    /// Present where answers are streams of events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Events>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2: Option<StreamUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http3: Option<StreamUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_readers: Option<SlowReading>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_connections: Option<Idle>,
}

/// Ramp-up, window and what followed until nothing was on its way: what costs are divided by, and
/// what has to be valid.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Whole {
    pub length_s: f64,
    pub sent: u64,
    pub completed: u64,
    pub retried: u64,
    /// Streams that were under way when the duration was over: they are no failures.
    pub unfinished: u64,
    /// Sent, and neither answered nor failed when the slot ended: it was interrupted, or gave up.
    pub unanswered: u64,
    #[serde(flatten)]
    pub seen: Seen,
    pub server_closed: u64,
}

impl Whole {
    fn of(measured: &Measured) -> Whole {
        let Counts { requests, seen, server_closed, .. } = measured.sum.whole.clone();
        let resolved = requests.completed + seen.failures.of_sent() + requests.unfinished;
        Whole {
            length_s: rounded(measured.whole_s, 6),
            sent: requests.sent,
            completed: requests.completed,
            retried: requests.retried,
            unfinished: requests.unfinished,
            unanswered: requests.sent.saturating_sub(resolved),
            seen,
            server_closed,
        }
    }
}

/// Requests of one name, in the windows that rate and times are about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EndpointUse {
    pub endpoint: String,
    pub completed: u64,
    pub failed: u64,
    pub throughput_rps: f64,
    pub latency_us: TimeSummary,
}

/// Events of streamed answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Events {
    /// Valid answers that were streams, and how many events each had, on average.
    pub responses: u64,
    pub per_response: f64,
    /// From when a request was due, or sent in a closed loop, to the first event.
    pub time_to_first_us: TimeSummary,
    /// From each event to the next one of the same answer.
    pub gap_us: TimeSummary,
    /// Mean time from an event to the next, of each valid answer that has several.
    pub per_event_us: TimeSummary,
    /// Events that came per second, of all answers.
    pub per_s: f64,
    /// Valid answers per second that kept the limits of the order's goodput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goodput_rps: Option<f64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptAlive {
    pub requested: KeepAlive,
    pub server_closed: u64,
}

/// How late requests were sent, in microseconds; 0 in a closed loop, where nothing is due.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SendDelay {
    /// As asked; 0 is exact, and on Unix sockets always.
    pub budget: f64,
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Client {
    pub threads: usize,
    #[serde(flatten)]
    pub all: ThreadUse,
    pub per_thread: Vec<ThreadUse>,
    /// How often threads waited and went on, in the window.
    pub wake_ups: u64,
    /// Windows, and those of them in which the client was saturated.
    pub windows: usize,
    pub client_limited_windows: usize,
    /// Those are left out of times and rate.
    pub client_limited_excluded: bool,
    /// Windows in which a thread was stalled, and for how long; always left out.
    pub stalled_windows: usize,
    pub stalled_s: f64,
    /// How many windows were left out; none when all would have to be.
    pub excluded_windows: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ThreadUse {
    #[serde(flatten)]
    pub usage: Usage,
    /// Share of the time spent on a CPU with work.
    pub busy: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TlsUse {
    #[serde(flatten)]
    pub handshakes: HandshakeCounts,
    /// As asked.
    pub resumption: bool,
    /// The certificates were verified.
    pub verified: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StreamUse {
    /// As asked, on each connection.
    pub streams: u32,
    #[serde(flatten)]
    pub seen: StreamCounts,
}

/// Connections that read slowly, next to the load.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SlowReading {
    pub connections: u32,
    pub bytes_per_s: u32,
    pub sent: u64,
    pub completed: u64,
    pub failed: u64,
    pub body_bytes: u64,
}

/// Connections held open, next to the load.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Idle {
    pub requested: u32,
    /// Answered and open at the end.
    pub held: u64,
    /// Requests on them without a valid answer.
    pub failed: u64,
    /// Closed by the server, and opened again.
    pub server_closed: u64,
    pub connect_failures: u64,
    pub failure_samples: Samples,
}

impl SlotResult {
    pub fn new(plan: &Plan, measured: &Measured) -> Self {
        let (order, counts) = (&plan.order, &measured.sum.recorder.counts);
        let (load, times) = (&order.load, &measured.sum.recorder.times);
        let is_secure = plan.tls.is_some();
        SlotResult {
            schema: SCHEMA,
            id: order.id.clone(),
            target: plan.targets.join(", "),
            kind: load.kind,
            protocol: load.protocol,
            ended_by: measured.ended_by,
            ramp_up_s: order.ramp_up_s,
            measured_s: rounded(measured.measured_s, 6),
            tail_s: rounded(measured.tail_s, 6),
            drain_s: rounded(measured.drain_s, 6),
            requests: counts.requests,
            seen: counts.seen.clone(),
            keepalive: KeptAlive { requested: load.keepalive, server_closed: counts.server_closed },
            throughput_rps: rounded(measured.sum.throughput_rps, 3),
            latency_us: TimeSummary::of(&measured.latency),
            service_time_us: TimeSummary::of(&times.service_time()),
            first_byte_time_us: TimeSummary::of(&times.first_byte_time()),
            connect_time_us: TimeSummary::of(&times.connect),
            tls_handshake_us: is_secure.then(|| TimeSummary::of(&times.handshake)),
            websocket_handshake_us: (load.protocol == Protocol::WebSocket)
                .then(|| TimeSummary::of(&times.upgrade)),
            send_delay_us: SendDelay {
                budget: plan.delay_budget_ns as f64 / 1e3,
                p50: times.send_delay.quantile_us(0.5),
                p99: times.send_delay.quantile_us(0.99),
                max: times.send_delay.max_us(),
            },
            client: client(measured, order.exclude_client_limited),
            windows: measured.sum.windows.clone(),
            whole: Whole::of(measured),
            endpoints: endpoints(plan, measured),
            events: events(plan, measured),
            tls: is_secure.then(|| {
                let Tls { resumption, verify, .. } = load.tls.clone().unwrap_or_default();
                TlsUse { handshakes: counts.handshakes, resumption, verified: verify }
            }),
            http2: streams(plan, Protocol::Http2, counts.streams),
            http3: streams(plan, Protocol::Http3, counts.streams),
            slow_readers: slow_readers(plan, &measured.others.slow.counts),
            idle_connections: idle_connections(plan, &measured.others),
        }
    }
}

fn streams(plan: &Plan, protocol: Protocol, seen: StreamCounts) -> Option<StreamUse> {
    let load = &plan.order.load;
    (load.protocol == protocol).then(|| StreamUse { streams: load.streams.unwrap_or(1), seen })
}

fn client(measured: &Measured, leave_out: bool) -> Client {
    let windows = measured.sum.windows.iter().filter(|window| !window.ramp_up);
    let of_threads = |usage: &Usage, threads: usize| {
        let busy = usage.busy_s() / (measured.measured_s * threads as f64).max(1e-9);
        ThreadUse { usage: *usage, busy: rounded(busy.min(1.0), 4) }
    };
    let threads = measured.sum.usage.len();
    Client {
        threads,
        all: of_threads(&measured.sum.usage.iter().copied().sum(), threads),
        per_thread: measured.sum.usage.iter().map(|usage| of_threads(usage, 1)).collect(),
        wake_ups: measured.sum.recorder.counts.wake_ups,
        windows: windows.clone().count(),
        client_limited_windows: windows.clone().filter(|window| window.client_limited).count(),
        client_limited_excluded: leave_out,
        stalled_windows: windows.clone().filter(|window| window.stalled).count(),
        stalled_s: rounded(windows.map(|window| window.stalled_s).sum(), 6),
        excluded_windows: measured.sum.excluded_windows,
    }
}

fn endpoints(plan: &Plan, measured: &Measured) -> Vec<EndpointUse> {
    let of = |(number, name): (usize, &String)| {
        let Endpoint { answered, failed } = measured.sum.recorder.times.endpoints.get(number);
        EndpointUse {
            endpoint: name.clone(),
            completed: answered.count(),
            failed,
            throughput_rps: rounded(answered.count() as f64 / measured.sum.counted_s, 3),
            latency_us: TimeSummary::of(&answered),
        }
    };
    plan.endpoints.iter().enumerate().map(of).collect()
}

fn events(plan: &Plan, measured: &Measured) -> Option<Events> {
    let times = &measured.sum.recorder.times.events;
    let per_s = |count: u64| rounded(count as f64 / measured.sum.counted_s, 3);
    plan.requests.iter().any(|request| request.events.is_some()).then(|| Events {
        responses: times.responses,
        per_response: rounded(times.of_responses as f64 / times.responses.max(1) as f64, 3),
        time_to_first_us: TimeSummary::of(&times.first),
        gap_us: TimeSummary::of(&times.gap),
        per_event_us: TimeSummary::of(&times.per_event),
        per_s: per_s(times.count()),
        goodput_rps: plan.order.goodput.map(|_| per_s(times.good)),
    })
}

fn slow_readers(plan: &Plan, counts: &Counts) -> Option<SlowReading> {
    let slow = plan.order.load.slow_readers?;
    Some(SlowReading {
        connections: slow.connections,
        bytes_per_s: slow.bytes_per_s,
        sent: counts.requests.sent,
        completed: counts.requests.completed,
        failed: counts.seen.failures.of_sent(),
        body_bytes: counts.seen.bytes.body,
    })
}

fn idle_connections(plan: &Plan, others: &OtherConnections) -> Option<Idle> {
    let (requested, counts) = (plan.order.load.idle_connections, &others.idle.counts);
    (requested > 0).then(|| Idle {
        requested,
        held: others.idle_held,
        failed: counts.seen.failures.of_sent(),
        server_closed: counts.server_closed,
        connect_failures: counts.seen.failures.get(Failure::Connect),
        failure_samples: counts.seen.failure_samples.clone(),
    })
}
