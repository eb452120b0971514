//! The exit code of what was measured.

use super::exit::{CLIENT_LIMITED, CROSSED, FAILED, OK, notify};
use crate::cli::threshold::Threshold;
use crate::engine::EndedBy;
use crate::engine::reasons::NO_PORT;
use crate::output::result::{Client, SlotResult};
use crate::output::words::several;

/// The exit code of a result; what is behind it goes to standard error. `clients` has the results of
/// all that took part.
pub fn of(result: &SlotResult, fail_if: &[Threshold], clients: &[SlotResult]) -> u8 {
    let crossed: Vec<_> = fail_if.iter().filter(|limit| limit.is_crossed(result)).collect();
    for limit in &crossed {
        notify(&format!("{limit} is true: it is {}", limit.actual(result)));
    }
    if !crossed.is_empty() {
        return CROSSED;
    }
    let interrupted = result.ended_by == EndedBy::Interrupt;
    // Who says how many may fail has the say.
    let tolerates = fail_if.iter().any(Threshold::is_about_failures);
    // Streams without an end are what was asked for.
    let without_port = result.whole.seen.connections.without_port;
    let is_answered = result.requests.completed + result.whole.unfinished > 0;
    if without_port > 0 {
        notify(&format!("{NO_PORT} ({without_port} attempts failed)"));
    }
    let failures = result.whole.seen.failures.total().saturating_sub(without_port);
    if failures > 0 && !tolerates || result.whole.unanswered > 0 && !interrupted || !is_answered {
        return FAILED;
    }
    if without_port > 0 && !tolerates {
        return CLIENT_LIMITED;
    }
    match clients.iter().find_map(|result| limit_of(&result.client)) {
        None => OK,
        Some(why) => {
            notify(&why);
            CLIENT_LIMITED
        }
    }
}

/// Where the client itself was saturated: in which windows.
fn limit_of(client: &Client) -> Option<String> {
    let bound = if client.client_limited_excluded { 0 } else { client.client_limited_windows };
    // Where none could be left out, all were bad.
    let all_bad =
        client.client_limited_windows + client.stalled_windows > 0 && client.excluded_windows == 0;
    (bound > 0 || all_bad).then(|| {
        format!(
            "the client was saturated in {} of {}, and stalled in {}; give it more \
             threads (-t) or CPUs, run for longer (-d), or leave out windows in which it was \
             saturated (--exclude-client-limited)",
            client.client_limited_windows,
            several(client.windows, "window"),
            client.stalled_windows
        )
    })
}
