//! What must hold of calls of gRPC.

use crate::order::{Order, Protocol, Request};

pub fn check(order: &Order) -> Result<(), String> {
    let login = order.session.iter().flat_map(|session| &session.login);
    order.requests.iter().chain(login).try_for_each(|request| check_request(request, order))
}

fn check_request(request: &Request, order: &Order) -> Result<(), String> {
    if !request.is_call() {
        ensure!(
            request.json.is_none(),
            "requests: json is the message of a call (--message), to grpc:// or grpcs://; give body"
        );
        return Ok(());
    }
    ensure!(
        order.load.protocol == Protocol::Http2,
        "load.protocol: URLs that begin with grpc:// or grpcs:// need \"http2\"; set that"
    );
    ensure!(
        order.session.is_none(),
        "session: users are there over HTTP/1.1 only; leave it out, or the calls"
    );
    ensure!(
        request.method == "GET" || request.method == "POST",
        "requests: a call has no method of HTTP but POST; leave it out"
    );
    ensure!(
        request.json.is_none() || request.body.is_none(),
        "requests: body and json are both what a call sends; give one of them"
    );
    Ok(())
}
