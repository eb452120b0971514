//! The result for people.

use std::fmt::Write;

use super::result::{Events, SlotResult, StreamUse, Whole};
use super::times::TimeSummary;
use super::words::{bytes, several, thousands, time};
use crate::grpc::status::status_text;
use crate::http1::head::SWITCHING;
use crate::order::Protocol;
use crate::record::Statuses;
use crate::websocket::farewell::code_text;

const BARS: usize = 12;
const BAR_WIDTH: f64 = 40.0;

/// The final table, with a histogram of latency.
pub fn render(result: &SlotResult) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: &str| {
        let _ = writeln!(text, "{label:<15}{value}");
    };
    let is_websocket = result.protocol == Protocol::WebSocket;
    if result.whole.completed == 0 && result.whole.unfinished == 0 {
        let sample = result.whole.seen.failure_samples.iter().next();
        let why = sample.map_or(String::new(), |sample| format!(": {sample}"));
        line("FAILED", &format!("no valid response{why}"));
    }
    line("Target", &result.target);
    line(
        "Throughput",
        &format!(
            "{} {}/s over {:.3} s",
            rate(result.throughput_rps),
            if is_websocket { "messages received" } else { "valid responses" },
            result.measured_s
        ),
    );
    line(if is_websocket { "Messages" } else { "Requests" }, &requests(result));
    // Ramp-up and drain included: a server that hangs at the end of a run is a server that hangs.
    let Whole { seen: whole, unfinished, unanswered, .. } = &result.whole;
    for (failure, count) in whole.failures.iter().filter(|(_, count)| *count > 0) {
        line("Failed", &format!("{} {}", number(count), failure.name()));
    }
    if *unanswered > 0 {
        line("Failed", &format!("{} without a response when the run ended", number(*unanswered)));
    }
    for sample in whole.failure_samples.iter() {
        line("", sample);
    }
    if *unfinished > 0 {
        let under_way =
            "under way when the load ended: they aren't failures, and aren't timed whole";
        line("Unfinished", &format!("{} {under_way}", several(*unfinished as usize, "stream")));
    }
    if !is_websocket {
        line("Statuses", &counted(&result.seen.by_status, status));
    }
    if !result.seen.by_close_code.is_empty() {
        line("Closed with", &counted(&result.seen.by_close_code, code_text));
    }
    if !result.seen.grpc_by_status.is_empty() {
        line("gRPC", &counted(&result.seen.grpc_by_status, status_text));
    }
    let (connections, received) = (result.seen.connections, result.seen.bytes);
    let closed = result.keepalive.server_closed;
    let (opened, closed) = (number(connections.opened), number(closed));
    line("Connections", &format!("{opened} opened, {closed} closed by the server"));
    line(
        "Received",
        &format!(
            "{} of heads, {} of {}",
            bytes(received.head),
            bytes(received.body),
            if is_websocket { "messages" } else { "bodies" }
        ),
    );
    line("", &columns(["mean", "p50", "p90", "p99", "p99.9", "max"].map(str::to_owned)));
    line("Latency", &times(&result.latency_us));
    line("Service time", &times(&result.service_time_us));
    line("First byte", &times(&result.first_byte_time_us));
    if let Some(events) = &result.events {
        line("First event", &times(&events.time_to_first_us));
        line("Event gap", &times(&events.gap_us));
        line("Per event", &times(&events.per_event_us));
        line("Events", &event_counts(events));
        line("", WORDS_OF_MODELS);
    }
    line("Connect time", &times(&result.connect_time_us));
    if let Some(handshakes) = &result.websocket_handshake_us {
        line("WebSocket", &times(handshakes));
        line("", "handshakes, after connecting");
    }
    if let (Some(tls), Some(handshakes)) = (&result.tls, &result.tls_handshake_us) {
        line("TLS handshake", &times(handshakes));
        line("", &format!("{} full, {} resumed", tls.handshakes.full, tls.handshakes.resumed));
    }
    for (label, used) in [("HTTP/2", &result.http2), ("HTTP/3", &result.http3)] {
        if let Some(used) = used {
            line(label, &streams(used));
        }
    }
    line("Client", &client(result));
    if let Some(slow) = &result.slow_readers {
        line(
            "Slow readers",
            &format!("{} sent, {} completed, {} failed", slow.sent, slow.completed, slow.failed),
        );
    }
    if let Some(idle) = &result.idle_connections {
        line(
            "Idle",
            &format!(
                "{} of {} held at the end, {} requests failed, {} connects failed, {} closed by \
                 the server",
                idle.held, idle.requested, idle.failed, idle.connect_failures, idle.server_closed
            ),
        );
        for sample in idle.failure_samples.iter() {
            line("", sample);
        }
    }
    text.push_str(&histogram(&result.latency_us));
    text
}

/// Whole where it is large.
fn rate(per_s: f64) -> String {
    if per_s < 1000.0 { format!("{per_s:.1}") } else { thousands(per_s) }
}

/// What the lines above are called where language models are compared.
const WORDS_OF_MODELS: &str = "of language models: TTFT (first event), ITL (event gap), TPOT (per event), tokens/s (events/s)";

fn event_counts(events: &Events) -> String {
    let Events { responses, per_response, per_s, goodput_rps, .. } = events;
    let good = match goodput_rps {
        Some(per_s) => format!("; goodput {} responses/s", rate(*per_s)),
        None => String::new(),
    };
    format!(
        "{} events/s, {per_response} per response, of {} whole ones{good}",
        rate(*per_s),
        number(*responses)
    )
}

fn counted(statuses: &Statuses, shown: impl Fn(u16) -> String) -> String {
    let counted =
        statuses.iter().map(|(status, count)| format!("{}: {}", shown(*status), number(*count)));
    counted.collect::<Vec<_>>().join(", ")
}

fn number(count: u64) -> String {
    thousands(count as f64)
}

fn status(status: u16) -> String {
    match status {
        SWITCHING => format!("{status} (protocol switched)"),
        status => status.to_string(),
    }
}

fn requests(result: &SlotResult) -> String {
    let requests = &result.requests;
    let mut text = format!(
        "{} sent, {} completed, {} on their way at the end",
        number(requests.sent),
        number(requests.completed),
        number(requests.unanswered)
    );
    if requests.retried > 0 {
        let _ = write!(text, ", {} retried on another connection", number(requests.retried));
    }
    if requests.unsent + requests.dropped > 0 {
        let _ = write!(
            text,
            ", {} scheduled but not sent, {} dropped",
            number(requests.unsent),
            number(requests.dropped)
        );
    }
    text
}

fn streams(StreamUse { streams, seen }: &StreamUse) -> String {
    let allowed = match seen.allowed.0 {
        Some(allowed) if allowed < *streams => {
            format!(" requested, {allowed} allowed by the server")
        }
        _ => String::new(),
    };
    format!(
        "{streams} streams per connection{allowed}; {} connections ended by GOAWAY, {} requests sent \
         again, {} streams refused, {} reset",
        seen.go_aways, seen.retried, seen.refused, seen.reset
    )
}

fn client(result: &SlotResult) -> String {
    let client = &result.client;
    let cpu_s = client.all.usage.cpu_s();
    let delay = &result.send_delay_us;
    let delay_words = if result.requests.sent > 0 && delay.max > 0.0 {
        let each = result.requests.sent as f64 / client.wake_ups.max(1) as f64;
        format!(", send delay p99 {}, {each:.1} requests per wake-up", time(delay.p99))
    } else {
        String::new()
    };
    let bound = match client.client_limited_windows {
        0 => String::new(),
        bound => {
            format!("; it was saturated in {bound} of {}", several(client.windows, "window"))
        }
    };
    let still = match client.stalled_windows {
        0 => String::new(),
        still => {
            format!("; it stalled for {:.3} s, in {}", client.stalled_s, several(still, "window"))
        }
    };
    format!(
        "{} {:.0}% busy, {} CPU per request{delay_words}{bound}{still}",
        several(client.threads, "thread"),
        client.all.busy * 100.0,
        time(cpu_s * 1e6 / result.requests.sent.max(1) as f64),
    )
}

fn times(times: &TimeSummary) -> String {
    if times.count == 0 {
        return "no sample".into();
    }
    let values = [times.mean, times.p50, times.p90, times.p99, times.p99_9, times.max];
    columns(values.map(time))
}

fn columns(values: [String; 6]) -> String {
    values.map(|value| format!("{value:>10}")).concat()
}

/// Bars over steps of equal ratio, from the least time to the greatest.
fn histogram(times: &TimeSummary) -> String {
    // One of this program's own can be decoded, and another one was when it was merged.
    let Some(distribution) = times.distribution().ok().filter(|_| times.count > 0) else {
        return String::new();
    };
    let (low, high) = (times.min.max(0.1), times.max.max(0.2));
    let ratio = (high / low).max(1.001).ln() / BARS as f64;
    let mut bars = [0u64; BARS];
    for step in distribution.iter_recorded() {
        let us = step.value_iterated_to() as f64;
        let bar = ((us / low).max(1.0).ln() / ratio) as usize;
        bars[bar.min(BARS - 1)] += step.count_at_value();
    }
    let most = bars.iter().copied().max().unwrap_or(1).max(1);
    let mut text = String::from("Latency up to\n");
    for (bar, count) in bars.iter().enumerate() {
        let up_to = low * (ratio * (bar + 1) as f64).exp();
        let width = (*count as f64 / most as f64 * BAR_WIDTH).ceil() as usize;
        let _ = writeln!(text, "{:>13}  {:<40} {count}", time(up_to), "▇".repeat(width));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Histogram;

    #[test]
    fn bars_count_every_sample() {
        let mut recorded = Histogram::default();
        for us in 1..1000 {
            recorded.record(us * 1000);
        }
        let text = histogram(&TimeSummary::of(&recorded));
        let counts =
            text.lines().skip(1).filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        assert_eq!(counts.sum::<u64>(), 999);
    }
}
