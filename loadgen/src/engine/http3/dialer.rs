//! How connections to an origin are made: what we allow a server, and how TLS is done.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, ConnectError, Connection, ConnectionHandle, Endpoint, EndpointConfig,
    RandomConnectionIdGenerator, TransportConfig, VarInt,
};
use rustls::pki_types::ServerName;

use crate::clock::now_ns;

/// Flow control windows as of HTTP/2, so that it isn't them that limit a server nearby.
const STREAM_WINDOW_BYTES: u32 = 6 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 15 << 20;
/// Streams that a server may have open at a time: it needs three.
const SERVER_STREAMS: u32 = 16;

#[derive(Debug, Clone)]
pub struct Dialer {
    endpoint: Arc<EndpointConfig>,
    client: ClientConfig,
}

impl Dialer {
    pub fn new(tls: Arc<rustls::ClientConfig>) -> Result<Dialer, String> {
        let crypto = QuicClientConfig::try_from(tls).map_err(|error| format!("TLS: {error}"))?;
        let mut transport = TransportConfig::default();
        transport
            // The server says when it has waited long enough.
            .max_idle_timeout(None)
            .max_concurrent_bidi_streams(VarInt::from_u32(0))
            .max_concurrent_uni_streams(VarInt::from_u32(SERVER_STREAMS))
            .stream_receive_window(VarInt::from_u32(STREAM_WINDOW_BYTES))
            .receive_window(VarInt::from_u32(CONNECTION_WINDOW_BYTES))
            .datagram_receive_buffer_size(None);
        let mut client = ClientConfig::new(Arc::new(crypto));
        client.transport_config(Arc::new(transport));
        let mut endpoint = EndpointConfig::default();
        // A socket serves one connection, so that its packets need no name.
        endpoint.cid_generator(|| Box::new(RandomConnectionIdGenerator::new(0)));
        Ok(Dialer { endpoint: Arc::new(endpoint), client })
    }

    /// Begins a connection; `fragments`: the socket may cut datagrams into pieces.
    pub fn dial(
        &self,
        address: SocketAddr,
        name: &ServerName<'_>,
        fragments: bool,
    ) -> Result<(Endpoint, ConnectionHandle, Connection), ConnectError> {
        let mut endpoint = Endpoint::new(Arc::clone(&self.endpoint), None, !fragments, None);
        let now = instant(now_ns());
        let (handle, connection) =
            endpoint.connect(now, self.client.clone(), address, &name.to_str())?;
        Ok((endpoint, handle, connection))
    }
}

/// The same moment on both clocks: they run alike, but the library's has no number.
static MOMENT: LazyLock<(Instant, u64)> = LazyLock::new(|| (Instant::now(), now_ns()));

pub fn instant(ns: u64) -> Instant {
    let (instant, at_ns) = *MOMENT;
    instant + Duration::from_nanos(ns.saturating_sub(at_ns))
}

pub fn nanoseconds(instant: Instant) -> u64 {
    let (first, at_ns) = *MOMENT;
    let since = instant.saturating_duration_since(first).as_nanos();
    at_ns.saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_run_alike() {
        let _ = *MOMENT;
        let now_ns = now_ns();
        assert_eq!(nanoseconds(instant(now_ns)), now_ns);
        assert!(nanoseconds(Instant::now()).abs_diff(now_ns) < 1_000_000_000);
    }
}
