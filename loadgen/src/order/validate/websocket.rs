//! What must hold of messages of a WebSocket.

use crate::order::{KeepAlive, Order, Protocol, Request};

pub fn check(order: &Order) -> Result<(), String> {
    let is_websocket = order.load.protocol == Protocol::WebSocket;
    let login = order.session.iter().flat_map(|session| &session.login);
    for request in order.requests.iter().chain(login) {
        ensure!(
            is_websocket || !request.is_message(),
            "load.protocol: URLs that begin with ws:// or wss:// need \"websocket\"; set that (leave \
             out --http2 and --http3)"
        );
        ensure!(
            !is_websocket || request.is_message(),
            "requests: {:?} is among URLs that begin with ws:// or wss://; load one or the other",
            request.url
        );
        ensure!(
            is_websocket || !request.binary,
            "requests: binary is about messages of a WebSocket (--binary); leave it out"
        );
    }
    if !is_websocket {
        ensure!(
            !order.load.broadcast,
            "load.broadcast: messages of a WebSocket are (--broadcast); leave it out"
        );
        return Ok(());
    }
    order.requests.iter().try_for_each(check_message)?;
    let load = &order.load;
    ensure!(
        order.session.is_none() && !load.cookies,
        "session: users and cookies are there over HTTP/1.1 only; leave them out"
    );
    ensure!(
        load.slow_readers.is_none(),
        "load.slow_readers: they are there for plain HTTP/1.1 only; leave them out"
    );
    if load.broadcast {
        check_broadcast(order).map_err(|why| format!("load.broadcast: {why}"))?;
    }
    Ok(())
}

fn check_broadcast(Order { load, requests, count, .. }: &Order) -> Result<(), String> {
    ensure!(requests.len() == 1, "all connections receive one message; give one request");
    ensure!(
        load.idle_connections == 0,
        "idle connections would receive the messages as well; leave them out"
    );
    ensure!(
        load.keepalive == KeepAlive::Always,
        "connections stay to receive what comes; leave keepalive out (--keepalive)"
    );
    let all = u64::from(load.connections);
    ensure!(
        count.is_none_or(|count| count % all == 0),
        "each message is received by all {all} connections; give a count that is a multiple of that"
    );
    let Some(arrivals) = &load.arrivals else { return Ok(()) };
    ensure!(
        count.is_none() && !arrivals.stages.is_empty() && arrivals.share.is_none(),
        "an open loop has stages, and neither a count nor a share (--rate)"
    );
    ensure!(
        arrivals.burst.is_none() && load.send_delay_budget_s == 0.0,
        "one message is sent at a time, when it is due; leave out burst and send_delay_budget_s"
    );
    Ok(())
}

fn check_message(request: &Request) -> Result<(), String> {
    let Some(body) = &request.body else {
        return Err("requests: a WebSocket needs a message to send: give body (--message)".into());
    };
    ensure!(
        request.binary || std::str::from_utf8(body).is_ok(),
        "requests: a message that is no UTF-8 is binary; set \"binary\": true (--binary)"
    );
    ensure!(
        request.method == "GET" && request.events.is_none(),
        "requests: messages have no method, and no events; leave them out"
    );
    ensure!(
        request.flow.is_none() && request.capture.is_empty() && request.expect.contains.is_empty(),
        "requests: flows, captures and contains are there over HTTP/1.1 only; leave them out"
    );
    Ok(())
}
