//! What lies between HTTP and the socket: TLS, HTTP/2, QUIC.

use crate::order::bounds::{MOST_AT_A_TIME, MOST_STREAMS};
use crate::order::{Order, Protocol, TlsVersion, Unit};

pub fn check(order: &Order) -> Result<(), String> {
    let load = &order.load;
    let secure =
        order.requests.iter().any(|request| request.has_scheme(&["https", "wss", "grpcs"]));
    let shares = load.protocol.shares_connections();
    let streams = load.streams.unwrap_or(1);
    ensure!(
        load.streams.is_none() || shares,
        "streams: only HTTP/2 and 3 have them; set \"protocol\": \"http2\" or \"http3\" (--http2, \
         --http3)"
    );
    ensure!(
        (1..=MOST_STREAMS).contains(&streams),
        "streams: {streams} is not between 1 and {MOST_STREAMS}"
    );
    ensure!(
        streams == 1 || u64::from(load.connections) * u64::from(streams) <= MOST_AT_A_TIME,
        "streams: {streams} on each of {} connections are more than {MOST_AT_A_TIME} requests at a \
         time; give fewer",
        load.connections
    );
    let by_connection = load.arrivals.as_ref().is_some_and(|a| a.unit == Unit::Connection);
    ensure!(
        !by_connection || streams == 1,
        "streams: where whole connections are due, their requests follow each other; leave streams \
         out"
    );
    if load.protocol == Protocol::Http3 {
        let all = order.requests.iter().all(|request| request.has_scheme(&["https"]));
        ensure!(
            all,
            "protocol: HTTP/3 is always encrypted; ask for https:// URLs, or leave it out (--http3)"
        );
        let version = load.tls.as_ref().and_then(|tls| tls.version);
        ensure!(
            version != Some(TlsVersion::V12),
            "tls: HTTP/3 has TLS 1.3 and no other; leave out version (--tls-version)"
        );
        ensure!(
            !load.kernel_times,
            "kernel_times: over HTTP/3 responses are timed when they are read; leave it out \
             (--kernel-times)"
        );
    }
    if let Some(tls) = &load.tls {
        ensure!(
            secure,
            "tls: no URL begins with https://, wss:// or grpcs://, so there is no TLS (--cacert, --tls-verify, \
             --cert, --key, --tls-version, --tls-resumption); leave it out"
        );
        ensure!(
            tls.verify || tls.ca_file.is_none(),
            "tls: whoever takes any certificate needs no ca_file; leave one out"
        );
        ensure!(
            tls.certificate_file.is_some() == tls.key_file.is_some(),
            "tls: a client's certificate and its key belong together; give certificate_file and \
             key_file (--cert, --key)"
        );
    }
    ensure!(
        !load.cookies || !shares,
        "cookies: they are kept over HTTP/1.1 only; leave out cookies (--cookies), or HTTP/2 and 3"
    );
    let others = load.slow_readers.is_some() || load.idle_connections > 0;
    ensure!(
        !others || !(secure || shares),
        "slow_readers: they and idle_connections are there for plain HTTP/1.1 only; leave them out, \
         or TLS and HTTP/2"
    );
    Ok(())
}
