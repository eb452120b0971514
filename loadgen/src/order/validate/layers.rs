//! What lies between HTTP and the socket: TLS, HTTP/2.

use crate::order::bounds::{MOST_AT_A_TIME, MOST_STREAMS};
use crate::order::{Order, Protocol, Unit};

pub fn check(order: &Order) -> Result<(), String> {
    let load = &order.load;
    let secure =
        order.requests.iter().any(|request| request.has_scheme(&["https", "wss", "grpcs"]));
    let http2 = load.protocol == Protocol::Http2;
    let streams = load.streams.unwrap_or(1);
    ensure!(
        load.streams.is_none() || http2,
        "streams: only HTTP/2 has them; set \"protocol\": \"http2\" (--http2)"
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
        !load.cookies || !http2,
        "cookies: they are kept over HTTP/1.1 only; leave out cookies (--cookies) or HTTP/2"
    );
    let others = load.slow_readers.is_some() || load.idle_connections > 0;
    ensure!(
        !others || !(secure || http2),
        "slow_readers: they and idle_connections are there for plain HTTP/1.1 only; leave them out, \
         or TLS and HTTP/2"
    );
    Ok(())
}
