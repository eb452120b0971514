//! What TLS and HTTP/2 add to the result.

use serde::Serialize;

use crate::engine::Plan;
use crate::order::{Protocol, Tls};
use crate::record::{Layers, Recorder, Timing};

#[derive(Debug, Clone, Serialize)]
pub struct TlsUse {
    pub full_handshakes: u64,
    pub resumed_handshakes: u64,
    /// As asked.
    pub resumption: bool,
    /// The certificates were verified.
    pub verified: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct Http2 {
    /// As asked, on each connection.
    pub streams: u32,
    /// The fewest that a server allowed; absent when no connection was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams_allowed: Option<u64>,
    /// Connections whose end the server announced.
    pub go_aways: u64,
    /// Requests asked again, because the server said it had not seen them; each is counted once
    /// among the sent ones.
    pub asked_again: u64,
    pub refused_streams: u64,
    /// Streams the server reset for other reasons.
    pub reset_streams: u64,
}

/// Times of handshakes, where there is TLS.
pub fn handshakes(plan: &Plan, recorder: &Recorder) -> Option<Timing> {
    plan.tls.is_some().then(|| seen(recorder).handshake)
}

pub fn tls(plan: &Plan, recorder: &Recorder) -> Option<TlsUse> {
    let asked = plan.order.load.tls.clone();
    plan.tls.is_some().then(|| {
        let (seen, Tls { resumption, insecure, .. }) = (seen(recorder), asked.unwrap_or_default());
        TlsUse {
            full_handshakes: seen.full_handshakes,
            resumed_handshakes: seen.resumed_handshakes,
            resumption,
            verified: !insecure,
        }
    })
}

pub fn http2(plan: &Plan, recorder: &Recorder) -> Option<Http2> {
    let load = &plan.order.load;
    (load.protocol == Protocol::Http2).then(|| {
        let seen = seen(recorder);
        Http2 {
            streams: load.streams.unwrap_or(1),
            // Without a limit the library says the largest number there is.
            streams_allowed: seen.streams_allowed.map(|allowed| allowed.min(u64::from(u32::MAX))),
            go_aways: seen.go_aways,
            asked_again: seen.asked_again,
            refused_streams: seen.refused_streams,
            reset_streams: seen.reset_streams,
        }
    })
}

fn seen(recorder: &Recorder) -> Layers {
    recorder.layers.as_deref().cloned().unwrap_or_default()
}
