//! What must hold where connections are users.

use crate::order::{Order, Request, Unit};

pub fn check(order: &Order) -> Result<(), String> {
    let has_flows = order.requests.iter().any(|request| request.flow.is_some());
    let needs_users =
        |request: &Request| !request.capture.is_empty() || !request.expect.contains.is_empty();
    if order.session.is_none() && !has_flows && !order.requests.iter().any(needs_users) {
        return Ok(());
    }
    let load = &order.load;
    if load.protocol.shares_connections() {
        return Err("session: users, flows and captures are there over HTTP/1.1 only; leave out \
                    \"protocol\""
            .into());
    }
    if load.idle_connections > 0 || load.slow_readers.is_some() {
        return Err(
            "session: idle connections and slow readers are no users; leave them out".into()
        );
    }
    let by_connection =
        load.arrivals.as_ref().is_some_and(|arrivals| arrivals.unit == Unit::Connection);
    if has_flows && (order.zipf.is_some() || order.sequence.is_some() || by_connection) {
        return Err("requests: a flow says which request follows; leave out zipf, sequence, and \
                    \"unit\": \"connection\""
            .into());
    }
    let Some(session) = &order.session else { return Ok(()) };
    if session.only_login && session.key.is_none() {
        return Err("session.only_login: without a key nobody would know the users later".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::order::parse::parse;

    #[test]
    fn contradictions_are_named() {
        for (requests, load, more, message) in [
            (r#""flow": "a""#, r#""protocol": "http2""#, "", "HTTP/1.1 only"),
            (r#""capture": {"a": {"json": "$"}}"#, r#""idle_connections": 1"#, "", "idle"),
            (r#""flow": "a""#, "", r#""zipf": 1"#, "zipf"),
            (r#""weight": 1"#, "", r#""session": {"only_login": true}"#, "only_login"),
            (
                r#""weight": 1"#,
                "",
                r#""session": {"login": [{"url": "u", "method": ""}]}"#,
                "session.login[0].method",
            ),
            (
                r#""weight": 1"#,
                "",
                r#""session": {"values": {"a": {"chose": ["b"]}}}"#,
                "session.values",
            ),
        ] {
            let list = [load, r#""connections": 1"#].join(",");
            let load = list.trim_start_matches(',');
            let list = [more, r#""count": 1"#].join(",");
            let more = list.trim_start_matches(',');
            let order = format!(
                r#"{{"requests": [{{"url": "http://127.0.0.1:1/", {requests}}}],
                    "load": {{"loop": "closed", {load}}}, {more}}}"#
            );
            let refused = parse(&order).expect_err(&order);
            assert!(refused.message.contains(message), "{}", refused.message);
        }
    }
}
