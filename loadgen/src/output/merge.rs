//! Results of several clients that loaded a server at the same time, as the one of a single client
//! that did it all.
//!
//! Counts and throughput add up, and so do histograms, exactly. Of the send delay no histogram is in a
//! result: each of its figures is the worst of any client. Windows stay those of each client, one
//! after the other, as percentiles of windows can't be added.

use std::collections::BTreeSet;

use super::result::{
    Client, EndpointUse, Events, Idle, KeptAlive, SendDelay, SlotResult, SlowReading, StreamUse,
    ThreadUse, TlsUse, Whole,
};
use super::times::TimeSummary;
use crate::engine::{EndedBy, Usage};
use crate::record::rounded;

/// By so much, as a share, the lengths of what was measured may differ.
const LENGTH_TOLERANCE: f64 = 0.1;

/// Its name, and what it is, in words.
type Trait = (&'static str, fn(&SlotResult) -> String);

/// What clients of one load have in common, each in words. Where it differs, their figures are about
/// different things.
const ALIKE: [Trait; 9] = [
    ("loop", |result| format!("{:?}", result.kind).to_lowercase()),
    ("protocol", |result| format!("{:?}", result.protocol).to_lowercase()),
    ("ramp-up", |result| format!("{} s", result.ramp_up_s)),
    ("keep-alive", |result| format!("{:?}", result.keepalive.requested).to_lowercase()),
    ("send-delay budget", |result| format!("{} µs", result.send_delay_us.budget)),
    ("number of streams", |result| part(streams(result), |used| used.streams.to_string())),
    ("timing of events", |result| part(&result.events, |_| "on".into())),
    ("goodput", |result| {
        part(&result.events.as_ref().and_then(|events| events.goodput_rps), |_| "counted".into())
    }),
    ("resumption of TLS sessions", |result| part(&result.tls, |tls| tls.resumption.to_string())),
];

fn part<T>(of: &Option<T>, words: impl Fn(&T) -> String) -> String {
    of.as_ref().map_or("off".into(), words)
}

/// A result, and the name of where it is from.
#[derive(Debug)]
pub struct Named {
    pub name: String,
    pub result: SlotResult,
}

/// Merges results, of which there is at least one; says what keeps them from that.
pub fn merge(parts: &[Named]) -> Result<SlotResult, String> {
    let [first, others @ ..] = parts else { return Err("there is no result to merge".into()) };
    others.iter().try_for_each(|other| ensure_alike(first, other))?;
    let results: Vec<&SlotResult> = parts.iter().map(|part| &part.result).collect();
    let result = &first.result;
    let mut requests = result.requests;
    let mut seen = result.seen.clone();
    for other in &results[1..] {
        let most_waiting = requests.most_waiting.max(other.requests.most_waiting);
        requests += other.requests;
        requests.most_waiting = most_waiting;
        seen += other.seen.clone();
    }
    Ok(SlotResult {
        schema: result.schema,
        id: joined(&results, |result| &result.id),
        target: joined(&results, |result| &result.target),
        kind: result.kind,
        protocol: result.protocol,
        ended_by: ended_by(&results),
        ramp_up_s: result.ramp_up_s,
        measured_s: rounded(sum(&results, |result| result.measured_s) / results.len() as f64, 6),
        tail_s: most(&results, |result| result.tail_s),
        drain_s: most(&results, |result| result.drain_s),
        requests,
        seen,
        keepalive: KeptAlive {
            requested: result.keepalive.requested,
            server_closed: results.iter().map(|result| result.keepalive.server_closed).sum(),
        },
        throughput_rps: rounded(sum(&results, |result| result.throughput_rps), 3),
        latency_us: times(parts, |result| Some(&result.latency_us))?,
        service_time_us: times(parts, |result| Some(&result.service_time_us))?,
        first_byte_time_us: times(parts, |result| Some(&result.first_byte_time_us))?,
        connect_time_us: times(parts, |result| Some(&result.connect_time_us))?,
        tls_handshake_us: any_times(parts, |result| result.tls_handshake_us.as_ref())?,
        websocket_handshake_us: any_times(parts, |result| result.websocket_handshake_us.as_ref())?,
        send_delay_us: SendDelay {
            budget: result.send_delay_us.budget,
            p50: most(&results, |result| result.send_delay_us.p50),
            p99: most(&results, |result| result.send_delay_us.p99),
            max: most(&results, |result| result.send_delay_us.max),
        },
        client: client(&results),
        windows: results.iter().flat_map(|result| result.windows.iter().cloned()).collect(),
        whole: whole(&results),
        endpoints: endpoints(parts)?,
        events: events(parts)?,
        tls: tls(&results),
        http2: all_streams(&results, |result| result.http2.as_ref()),
        http3: all_streams(&results, |result| result.http3.as_ref()),
        slow_readers: slow_readers(&results),
        idle_connections: idle(&results),
    })
}

fn ensure_alike(first: &Named, other: &Named) -> Result<(), String> {
    for (what, words) in ALIKE {
        let (one, another) = (words(&first.result), words(&other.result));
        if one != another {
            return Err(format!(
                "{} has another {what} than {} ({another}, {one}): their figures can't be added; \
                 give all clients the same flags",
                other.name, first.name
            ));
        }
    }
    let (one, another) = (first.result.measured_s, other.result.measured_s);
    if (one - another).abs() > LENGTH_TOLERANCE * one.max(another) {
        return Err(format!(
            "{} measured for {another} s and {} for {one} s: throughput adds up only of clients \
             that loaded the server for as long, at the same time",
            other.name, first.name
        ));
    }
    Ok(())
}

fn sum(results: &[&SlotResult], of: impl Fn(&SlotResult) -> f64) -> f64 {
    results.iter().map(|result| of(result)).sum()
}

fn most(results: &[&SlotResult], of: impl Fn(&SlotResult) -> f64) -> f64 {
    results.iter().map(|result| of(result)).fold(0.0, f64::max)
}

/// Different texts, each once.
fn joined(results: &[&SlotResult], of: impl Fn(&SlotResult) -> &str) -> String {
    let mut known = BTreeSet::new();
    let new = results.iter().map(|result| of(result)).filter(|text| known.insert(*text));
    new.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
}

/// What was unusual about the end of any of them.
fn ended_by(results: &[&SlotResult]) -> EndedBy {
    let unusual = [EndedBy::Interrupt, EndedBy::Unreachable, EndedBy::Limit, EndedBy::Late];
    let any = |end: &EndedBy| results.iter().any(|result| result.ended_by == *end);
    unusual.into_iter().find(any).unwrap_or(results[0].ended_by)
}

/// The times that `of` gives, all together; a damaged histogram is named with where it is from.
fn times(
    parts: &[Named],
    of: impl Fn(&SlotResult) -> Option<&TimeSummary>,
) -> Result<TimeSummary, String> {
    for Named { name, result } in parts {
        if let Some(times) = of(result).filter(|times| times.count > 0) {
            times.distribution().map_err(|why| format!("{name}: {why}"))?;
        }
    }
    TimeSummary::merged(parts.iter().filter_map(|part| of(&part.result)))
}

/// The same, where there are any.
fn any_times(
    parts: &[Named],
    of: impl Fn(&SlotResult) -> Option<&TimeSummary>,
) -> Result<Option<TimeSummary>, String> {
    of(&parts[0].result).is_some().then(|| times(parts, of)).transpose()
}

fn client(results: &[&SlotResult]) -> Client {
    let all = || results.iter().map(|result| &result.client);
    let count = |of: fn(&Client) -> usize| -> usize { all().map(of).sum() };
    let threads = count(|client| client.threads);
    let usage = |client: &Client| client.all.usage;
    let busy: f64 = all().map(|client| client.all.busy * client.threads as f64).sum();
    Client {
        threads,
        all: ThreadUse {
            usage: all().map(usage).sum::<Usage>(),
            busy: rounded(busy / threads.max(1) as f64, 4),
        },
        per_thread: all().flat_map(|client| client.per_thread.iter().cloned()).collect(),
        wake_ups: all().map(|client| client.wake_ups).sum(),
        windows: count(|client| client.windows),
        client_limited_windows: count(|client| client.client_limited_windows),
        client_limited_excluded: all().all(|client| client.client_limited_excluded),
        stalled_windows: count(|client| client.stalled_windows),
        stalled_s: rounded(all().map(|client| client.stalled_s).sum(), 6),
        excluded_windows: count(|client| client.excluded_windows),
    }
}

fn whole(results: &[&SlotResult]) -> Whole {
    let mut all = results[0].whole.clone();
    for Whole { length_s, sent, completed, retried, unfinished, unanswered, seen, server_closed } in
        results[1..].iter().map(|result| &result.whole)
    {
        all.length_s = all.length_s.max(*length_s);
        all.sent += sent;
        all.completed += completed;
        all.retried += retried;
        all.unfinished += unfinished;
        all.unanswered += unanswered;
        all.seen += seen.clone();
        all.server_closed += server_closed;
    }
    all
}

/// By name, in the order in which they come.
fn endpoints(parts: &[Named]) -> Result<Vec<EndpointUse>, String> {
    let mut all: Vec<EndpointUse> = Vec::new();
    for more in parts.iter().flat_map(|part| &part.result.endpoints) {
        match all.iter_mut().find(|known| known.endpoint == more.endpoint) {
            None => all.push(more.clone()),
            Some(known) => {
                known.completed += more.completed;
                known.failed += more.failed;
                known.throughput_rps = rounded(known.throughput_rps + more.throughput_rps, 3);
            }
        }
    }
    for endpoint in &mut all {
        let name = endpoint.endpoint.clone();
        endpoint.latency_us = times(parts, |result| {
            let same = result.endpoints.iter().find(|endpoint| endpoint.endpoint == name)?;
            Some(&same.latency_us)
        })?;
    }
    Ok(all)
}

fn events(parts: &[Named]) -> Result<Option<Events>, String> {
    let all = || parts.iter().filter_map(|part| part.result.events.as_ref());
    if all().next().is_none() {
        return Ok(None);
    }
    let responses: u64 = all().map(|events| events.responses).sum();
    let of_responses: f64 = all().map(|events| events.per_response * events.responses as f64).sum();
    Ok(Some(Events {
        responses,
        per_response: rounded(of_responses / responses.max(1) as f64, 3),
        time_to_first_us: times(parts, |result| Some(&result.events.as_ref()?.time_to_first_us))?,
        gap_us: times(parts, |result| Some(&result.events.as_ref()?.gap_us))?,
        per_event_us: times(parts, |result| Some(&result.events.as_ref()?.per_event_us))?,
        per_s: rounded(all().map(|events| events.per_s).sum(), 3),
        goodput_rps: all().map(|events| events.goodput_rps).sum(),
    }))
}

fn tls(results: &[&SlotResult]) -> Option<TlsUse> {
    results.iter().filter_map(|result| result.tls.clone()).reduce(|mut all, more| {
        all.handshakes += more.handshakes;
        all.verified &= more.verified;
        all
    })
}

fn streams(result: &SlotResult) -> &Option<StreamUse> {
    if result.http2.is_some() { &result.http2 } else { &result.http3 }
}

fn all_streams(
    results: &[&SlotResult],
    of: impl Fn(&SlotResult) -> Option<&StreamUse>,
) -> Option<StreamUse> {
    results.iter().filter_map(|result| of(result).cloned()).reduce(|mut all, more| {
        all.seen += more.seen;
        all
    })
}

/// Each client may have had slow readers or not.
fn slow_readers(results: &[&SlotResult]) -> Option<SlowReading> {
    results.iter().filter_map(|result| result.slow_readers.clone()).reduce(|mut all, more| {
        all.connections += more.connections;
        all.bytes_per_s = all.bytes_per_s.max(more.bytes_per_s);
        all.sent += more.sent;
        all.completed += more.completed;
        all.failed += more.failed;
        all.body_bytes += more.body_bytes;
        all
    })
}

fn idle(results: &[&SlotResult]) -> Option<Idle> {
    results.iter().filter_map(|result| result.idle_connections.clone()).reduce(|mut all, more| {
        all.requested += more.requested;
        all.held += more.held;
        all.failed += more.failed;
        all.server_closed += more.server_closed;
        all.connect_failures += more.connect_failures;
        all.failure_samples += more.failure_samples;
        all
    })
}
