//! What holds for every protocol alike: plain HTTP/1.1, TLS, HTTP/2 over TLS and over cleartext.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::layers::frames::Frames;
use crate::layers::secure::Secure;
use crate::support::{Client, Server, engine, expect, number, order, run, run_on};
use serde_json::{Value, json};

const BODY: &[u8] = b"Hello, World!";
const COUNT: u64 = 20;
/// By so much a server's clock and the engine's may disagree on where a window begins.
const EDGE: Duration = Duration::from_millis(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    Plain,
    Tls,
    Http2Tls,
    Http2,
}

const ALL: [Layer; 4] = [Layer::Plain, Layer::Tls, Layer::Http2Tls, Layer::Http2];

/// A connection as the server sees it, whatever it speaks.
trait Session {
    /// The next request; `None` when the client closed.
    fn next(&mut self) -> Option<u32>;
    fn answer(&mut self, id: u32, status: u16, body: &[u8]);
    /// An answer that announces more than comes.
    fn cut(&mut self, id: u32);

    fn answer_all(&mut self) {
        while let Some(id) = self.next() {
            self.answer(id, 200, BODY);
        }
    }
}

impl<S: Read + Write> Session for Client<S> {
    fn next(&mut self) -> Option<u32> {
        self.request().map(|_| 0)
    }

    fn answer(&mut self, _: u32, status: u16, body: &[u8]) {
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", body.len());
        self.write(&[head.as_bytes(), body].concat());
    }

    fn cut(&mut self, _: u32) {
        self.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
    }
}

impl<S: Read + Write> Session for Frames<S> {
    fn next(&mut self) -> Option<u32> {
        self.request()
    }

    fn answer(&mut self, id: u32, status: u16, body: &[u8]) {
        self.head(id, status, Some(body.len()), body.is_empty());
        if !body.is_empty() {
            self.data(id, body, true);
        }
    }

    fn cut(&mut self, id: u32) {
        self.head(id, 200, Some(100), false);
        self.data(id, b"only this", true);
    }
}

/// A server, and an order to it.
struct Site {
    layer: Layer,
    server: Server,
    secure: Option<crate::layers::certificates::Authority>,
}

impl Site {
    /// `script` gets each connection and its number.
    fn start(
        layer: Layer,
        script: impl Fn(&mut dyn Session, usize) + Send + Sync + 'static,
    ) -> Site {
        let (server, secure) = match layer {
            Layer::Plain => (
                Server::start(move |mut client| {
                    let number = client.number;
                    script(&mut client, number);
                }),
                None,
            ),
            Layer::Http2 => (
                Server::start(move |client| {
                    if let Some(mut frames) = Frames::begin(client.stream, &[]) {
                        script(&mut frames, client.number);
                    }
                }),
                None,
            ),
            Layer::Tls | Layer::Http2Tls => {
                let alpn: &[&str] = if layer == Layer::Tls { &[] } else { &["h2"] };
                let secure = Secure::start(alpn, move |mut session| {
                    let number = session.number;
                    if layer == Layer::Tls {
                        script(&mut session, number);
                    } else if let Some(mut frames) = Frames::begin(session.stream, &[]) {
                        script(&mut frames, number);
                    }
                });
                (secure.server, Some(secure.authority))
            }
        };
        Site { layer, server, secure }
    }

    fn answering(layer: Layer) -> Site {
        Site::start(layer, |session, _| session.answer_all())
    }

    fn order(&self, count: u64, more: Value) -> Value {
        let scheme = if self.secure.is_some() { "https" } else { "http" };
        let mut order = order(&format!("{scheme}://{}/", self.server.address), count, more);
        if let Some(authority) = &self.secure {
            order["load"]["tls"] = json!({"ca_file": authority.file()});
        }
        if matches!(self.layer, Layer::Http2 | Layer::Http2Tls) {
            order["load"]["protocol"] = json!("http2");
        }
        order
    }
}

fn open(rate: f64, more: Value) -> Value {
    let mut load = json!({"loop": "open", "connections": 4,
                          "arrivals": {"stages": [{"rate_per_s": rate}]}});
    for (key, value) in more.as_object().into_iter().flatten() {
        load[key] = value.clone();
    }
    json!({"load": load})
}

#[test]
fn answers_are_counted_checked_and_timed() {
    for layer in ALL {
        let site = Site::answering(layer);
        let mut order = site.order(100, json!({"load": {"connections": 3}}));
        let sha256 = crate::layers::nginx::sha256(BODY);
        order["requests"][0]["expect"] = json!({"body_bytes": 13, "body_sha256": sha256});
        let result = run_on(&mut engine(2), &order);
        expect(
            &result,
            &[
                ("/requests/sent", 100),
                ("/requests/completed", 100),
                ("/bytes/body", 1300),
                ("/connections/opened", 3),
                ("/connections/reused_requests", 97),
                ("/connect_time_us/count", 3),
                ("/first_byte_time_us/count", 100),
                ("/whole/completed", 100),
            ],
        );
        order["requests"][0]["expect"] = json!({"body_sha256": "0".repeat(64)});
        expect(&run(&order), &[("/requests/completed", 99), ("/failures/body", 1)]);
    }
}

#[test]
fn wrong_and_cut_answers_fail_alike() {
    for layer in ALL {
        let site = Site::start(layer, |session, _| {
            while let Some(id) = session.next() {
                session.answer(id, 404, b"no");
            }
        });
        let counts =
            [("/failures/status", COUNT), ("/by_status/404", COUNT), ("/connections/opened", 1)];
        expect(&run(&site.order(COUNT, json!({}))), &counts);
        let site = Site::start(layer, move |session, _| {
            while let Some(id) = session.next() {
                session.cut(id);
                if matches!(layer, Layer::Plain | Layer::Tls) {
                    return;
                }
            }
        });
        let result = run(&site.order(COUNT, json!({})));
        expect(&result, &[("/requests/sent", COUNT), ("/failures/truncated", COUNT)]);
    }
}

#[test]
fn a_server_that_says_nothing_times_out() {
    for layer in ALL {
        let site = Site::start(layer, |session, _| while session.next().is_some() {});
        let more = json!({"load": {"connections": 4, "timeout_s": 0.2}});
        let result = run(&site.order(8, more));
        expect(&result, &[("/failures/timeout", 8), ("/response_time_us/count", 8)]);
        assert!(result["response_time_us"]["min"].as_f64() >= Some(199_000.0), "{result:#}");
    }
}

#[test]
fn connections_stay_between_slots_and_no_more_than_are_asked_for() {
    for layer in ALL {
        let open = Arc::new(AtomicUsize::new(0));
        let now = Arc::clone(&open);
        let site = Site::start(layer, move |session, _| {
            now.fetch_add(1, Ordering::SeqCst);
            session.answer_all();
            now.fetch_sub(1, Ordering::SeqCst);
        });
        let mut engine = engine(1);
        for (connections, opened) in [(10, 10), (10, 0), (2, 0), (3, 1)] {
            let load = json!({"load": {"connections": connections}});
            let result = run_on(&mut engine, &site.order(COUNT, load));
            expect(&result, &[("/requests/completed", COUNT), ("/connections/opened", opened)]);
            while open.load(Ordering::SeqCst) != connections {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

#[test]
fn keepalive_limits_of_ours() {
    for layer in ALL {
        let site = Site::answering(layer);
        for (keepalive, opened) in [(json!("never"), 20), (json!(1), 20), (json!(6), 4)] {
            let result = run(&site.order(COUNT, json!({"load": {"keepalive": keepalive}})));
            expect(
                &result,
                &[
                    ("/requests/completed", COUNT),
                    ("/connections/opened", opened),
                    ("/keepalive/server_closed", 0),
                ],
            );
        }
    }
}

#[test]
fn what_is_in_flight_at_the_end_is_unanswered_and_drained() {
    for layer in ALL {
        let site = Site::start(layer, |session, number| {
            while let Some(id) = session.next() {
                if number > 0 {
                    std::thread::sleep(Duration::from_millis(300));
                    session.answer(id, 200, BODY);
                }
            }
        });
        let more = json!({"duration_s": 0.15, "count": null,
                          "load": {"connections": 3, "timeout_s": 0.8}});
        let mut engine = engine(1);
        let order = site.order(1, more);
        let result = run_on(&mut engine, &order);
        let unanswered =
            [("/requests/sent", 3), ("/requests/unanswered", 3), ("/requests/drained", 2)];
        expect(&result, &unanswered);
        // What followed the window is in the whole only.
        let whole = [("/whole/sent", 3), ("/whole/completed", 2), ("/whole/failures/timeout", 1)];
        expect(&result, &whole);
        // The connections with answers are kept, the other one isn't.
        expect(&run_on(&mut engine, &order), &[("/connections/opened", 1)]);
    }
}

#[test]
fn an_open_loop_sends_what_is_due_and_omits_nothing() {
    for (layer, budget_s) in with_budgets() {
        let site = Site::answering(layer);
        let load = open(1000.0, json!({"send_lag_budget_s": budget_s}));
        let result = run_on(&mut engine(2), &site.order(200, load));
        expect(&result, &[("/requests/completed", 200), ("/response_time_us/count", 200)]);
        expect(&result, &[("/requests/dropped", 0), ("/client/threads", 2)]);
        let site = Site::start(layer, |session, _| while session.next().is_some() {});
        let load = json!({"connections": 2, "timeout_s": 0.6, "send_lag_budget_s": budget_s});
        let mut more = open(100.0, load);
        (more["count"], more["duration_s"]) = (Value::Null, json!(0.3));
        let result = run(&site.order(1, more));
        expect(
            &result,
            &[
                ("/requests/sent", 2),
                ("/requests/unanswered", 2),
                ("/requests/unsent", 28),
                ("/response_time_us/count", 30),
            ],
        );
    }
}

fn with_budgets() -> impl Iterator<Item = (Layer, f64)> {
    ALL.into_iter().flat_map(|layer| [(layer, 0.0), (layer, 0.01)])
}

/// Answers that come after a known time, while the client looks away for longer than that.
#[test]
fn an_answer_that_lay_in_the_kernel_is_timed_by_its_arrival() {
    for layer in ALL {
        let site = Site::start(layer, |session, _| {
            while let Some(id) = session.next() {
                std::thread::sleep(Duration::from_millis(2));
                session.answer(id, 200, BODY);
            }
        });
        let mut engine = engine(1);
        let mut run = |budget_s: f64| {
            let load = json!({"connections": 16, "send_lag_budget_s": budget_s});
            let result = run_on(&mut engine, &site.order(100, open(500.0, load)));
            expect(&result, &[("/requests/completed", 100), ("/service_time_us/count", 100)]);
            // Two clocks are read, one after the other.
            assert!(result["service_time_us"]["min"].as_f64() >= Some(1_900.0), "{result:#}");
            let first = result["first_byte_time_us"]["max"].as_f64();
            assert!(first <= result["service_time_us"]["max"].as_f64(), "{result:#}");
            result
        };
        // Connections are shared only by slots that time alike.
        expect(&run(0.0), &[("/connections/opened", 16)]);
        expect(&run(0.01), &[("/connections/opened", 16)]);
        // A busy machine may hold everything up, but not each time.
        let told_right = || {
            let result = run(0.01);
            expect(&result, &[("/connections/opened", 0)]);
            let together = number(&result, "/client/wake_ups") < 80;
            together && result["service_time_us"]["p50"].as_f64() < Some(9_000.0)
        };
        assert!(std::iter::repeat_with(told_right).take(50).any(|right| right), "{layer:?}");
    }
}

/// Who is told by the kernel when answers came needn't wake up for them.
#[test]
fn with_the_kernels_times_exact_loops_read_answers_when_they_send() {
    for layer in ALL {
        let (site, mut engine) = (Site::answering(layer), engine(1));
        let mut run = |kernel_times: bool| {
            let load = json!({"connections": 16, "kernel_times": kernel_times});
            let result = run_on(&mut engine, &site.order(200, open(2_000.0, load)));
            expect(&result, &[("/requests/completed", 200), ("/service_time_us/count", 200)]);
            result
        };
        // Connections are shared only by slots that time alike.
        expect(&run(false), &[("/connections/opened", 16)]);
        expect(&run(true), &[("/connections/opened", 16)]);
        // They lie in their sockets until the next request is due, half a millisecond later. A busy
        // machine may hold everything up, but not each time.
        let told_right = || {
            let result = run(true);
            expect(&result, &[("/connections/opened", 0)]);
            let seldom = number(&result, "/client/wake_ups") < 260;
            seldom && result["service_time_us"]["p50"].as_f64() < Some(450.0)
        };
        assert!(std::iter::repeat_with(told_right).take(50).any(|right| right), "{layer:?}");
    }
}

#[test]
fn with_the_kernels_times_no_answer_is_timed_too_short() {
    for layer in ALL {
        let site = Site::start(layer, |session, _| {
            while let Some(id) = session.next() {
                std::thread::sleep(Duration::from_millis(2));
                session.answer(id, 200, BODY);
            }
        });
        let more = json!({"load": {"connections": 4, "kernel_times": true}});
        let result = run(&site.order(COUNT, more));
        expect(&result, &[("/requests/completed", COUNT), ("/service_time_us/count", COUNT)]);
        // Two clocks are read, one after the other.
        assert!(result["service_time_us"]["min"].as_f64() >= Some(1_900.0), "{result:#}");
    }
}

/// The server can only go on with the large answer when the client reads, and small ones are due
/// all the while.
#[test]
fn nobody_looks_away_from_the_rest_of_an_answer() {
    const LARGE_BYTES: u64 = 120_000_000;
    let body = vec![b'x'; LARGE_BYTES as usize];
    let server = Server::start(move |mut client| {
        while let Some(head) = client.request() {
            client.answer(0, 200, if head.starts_with("GET /large") { &body } else { BODY });
        }
    });
    let more = open(200.0, json!({"connections": 16, "send_lag_budget_s": 0.01}));
    let mut order = order(&server.url(), 100, more);
    let large = json!({"url": format!("{}large", server.url()), "endpoint": "large"});
    order["requests"] = json!([large, {"url": server.url()}]);
    order["sequence"] = json!([vec![0], vec![1; 99]].concat());
    let mut engine = engine(1);
    let mut looked = || {
        let result = run_on(&mut engine, &order);
        expect(&result, &[("/requests/completed", 100), ("/bytes/body", LARGE_BYTES + 99 * 13)]);
        number(&result, "/client/wake_ups")
    };
    // Who looks every 10 ms looks 50 times in this half second, now and then a bit more often. A
    // socket holds some MB, so that the large answer alone takes more looks than that; where the
    // machine is so busy that much comes at once, ten of many tries will do.
    assert_eq!((0..40).filter(|_| looked() > 75).take(10).count(), 10);
}

#[test]
fn pauses_are_kept() {
    for layer in ALL {
        let site = Site::answering(layer);
        let result = run(&site.order(COUNT, json!({"load": {"think": {"mean_s": 0.0002}}})));
        expect(&result, &[("/requests/completed", COUNT)]);
        assert!(result["measured_s"].as_f64() >= Some(0.0038), "{result:#}");
    }
}

/// A pause shorter than a millisecond is not rounded up to one. On a busy machine any pause may end
/// late, but not each time.
#[test]
fn short_pauses_are_short() {
    for layer in ALL {
        let (site, mut engine) = (Site::answering(layer), engine(1));
        let order = site.order(COUNT, json!({"load": {"think": {"mean_s": 0.0002}}}));
        let mut pause_us = || {
            let result = run_on(&mut engine, &order);
            let of = |path: &str| result.pointer(path).and_then(Value::as_f64).expect("a number");
            let paused_us = of("/measured_s") * 1e6 - COUNT as f64 * of("/service_time_us/mean");
            paused_us / (COUNT - 1) as f64
        };
        assert!((0..100).any(|_| pause_us() < 900.0), "{layer:?}");
    }
}

/// 16 connections at a server that takes about as long for each answer, so that they come in bursts:
/// a window has as many as the server gave in that time, wherever it begins.
#[test]
fn the_rate_of_a_window_has_no_bias() {
    for (service_s, lead_in_s, window_s) in [(0.01, 0.1, 0.8), (0.1, 0.25, 0.8), (0.6, 0.9, 1.2)] {
        let begun = Arc::new(OnceLock::new());
        let answered = Arc::new(Mutex::new(Vec::new()));
        let (first, times) = (begun.clone(), answered.clone());
        let site = Site::start(Layer::Plain, move |session, _| {
            while let Some(id) = session.next() {
                first.get_or_init(Instant::now);
                std::thread::sleep(Duration::from_secs_f64(service_s));
                times.lock().expect("no thread panicked").push(Instant::now());
                session.answer(id, 200, BODY);
            }
        });
        let more = json!({"lead_in_s": lead_in_s, "duration_s": window_s, "count": null,
                          "window_s": 0.05, "load": {"connections": 16}});
        let result = run(&site.order(1, more));
        let opens = *begun.get().expect("a request came") + Duration::from_secs_f64(lead_in_s);
        let closes = opens + Duration::from_secs_f64(window_s);
        let times = answered.lock().expect("no thread panicked");
        let given =
            |from, to| times.iter().filter(|&&time| from < time && time < to).count() as u64;
        let completed = number(&result, "/requests/completed");
        let (least, most) =
            (given(opens + EDGE, closes - EDGE), given(opens - EDGE, closes + EDGE));
        assert!((least..=most).contains(&completed), "{least} to {most}: {result:#}");
        expect(&result, &[("/requests/carried", 16), ("/requests/unanswered", 16)]);
        let of = |path: &str| number(&result, path);
        assert_eq!(of("/requests/sent") + 16, of("/requests/completed") + 16);
        assert_eq!(of("/whole/sent"), of("/whole/completed"));
        assert!(of("/whole/completed") >= of("/requests/completed") + 16, "{result:#}");
        let windows = result["windows"].as_array().expect("a list");
        let early = windows.iter().filter(|window| window["lead_in"] == true).count();
        assert_eq!(early, (lead_in_s / 0.05_f64).round() as usize, "{result:#}");
    }
}

/// With a lead-in, times are those of the requests that were due in the window: none is left out,
/// and none cut short at its end.
#[test]
fn an_open_loop_tells_of_all_that_was_due_in_the_window() {
    for (layer, budget_s) in with_budgets() {
        let site = Site::start(layer, |session, _| {
            while let Some(id) = session.next() {
                std::thread::sleep(Duration::from_millis(200));
                session.answer(id, 200, BODY);
            }
        });
        let mut more = open(50.0, json!({"connections": 30, "send_lag_budget_s": budget_s}));
        (more["lead_in_s"], more["duration_s"], more["count"]) =
            (json!(0.4), json!(0.5), Value::Null);
        let result = run_on(&mut engine(2), &site.order(1, more));
        expect(&result, &[("/response_time_us/count", 25), ("/requests/unsent", 0)]);
        expect(&result, &[("/service_time_us/count", 25)]);
        assert!(result["response_time_us"]["min"].as_f64() >= Some(199_000.0), "{result:#}");
        let of = |path: &str| number(&result, path);
        assert_eq!(of("/requests/drained"), of("/requests/unanswered"), "{result:#}");
        assert!(of("/requests/unanswered") >= 5, "{result:#}");
        let ends = of("/requests/completed") + of("/requests/unanswered");
        assert_eq!(of("/requests/sent") + of("/requests/carried"), ends, "{result:#}");
    }
}
