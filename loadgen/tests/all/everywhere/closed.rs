//! Closed loops, and what every loop has.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{ALL, BODY, COUNT, Layer, Site};
use crate::support::{engine, expect, number, run, run_on};

/// By so much a server's clock and the engine's may disagree on where a window begins.
const EDGE: Duration = Duration::from_millis(30);

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
        // Messages have no status.
        if !layer.is_websocket() {
            expect(&run(&site.order(COUNT, json!({}))), &counts);
        }
        let site = Site::start(layer, move |session, _| {
            while let Some(id) = session.next() {
                session.cut(id);
                if !matches!(layer, Layer::Http2 | Layer::Http2Tls | Layer::Http3) {
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
        expect(&result, &[("/failures/timeout", 8), ("/latency_us/count", 8)]);
        assert!(result["latency_us"]["min"].as_f64() >= Some(199_000.0), "{result:#}");
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

/// All connections are open when the window begins: on a busy machine handshakes may outlast it.
#[test]
fn what_is_in_flight_at_the_end_is_unanswered_and_drained() {
    for layer in ALL {
        let slow = Arc::new(AtomicBool::new(false));
        let now = Arc::clone(&slow);
        let site = Site::start(layer, move |session, number| {
            while let Some(id) = session.next() {
                if now.load(Ordering::SeqCst) {
                    if number == 0 {
                        continue;
                    }
                    std::thread::sleep(Duration::from_millis(300));
                }
                session.answer(id, 200, BODY);
            }
        });
        let mut engine = engine(1);
        let all_at_once = site.order(3, json!({"load": {"connections": 3}}));
        expect(&run_on(&mut engine, &all_at_once), &[("/connections/opened", 3)]);
        slow.store(true, Ordering::SeqCst);
        let more = json!({"duration_s": 0.15, "count": null,
                          "load": {"connections": 3, "timeout_s": 0.8}});
        let result = run_on(&mut engine, &site.order(1, more));
        let unanswered =
            [("/requests/sent", 3), ("/requests/unanswered", 3), ("/requests/drained", 2)];
        expect(&result, &unanswered);
        // What followed the window is in the whole only.
        let whole = [("/whole/sent", 3), ("/whole/completed", 2), ("/whole/failures/timeout", 1)];
        expect(&result, &whole);
        slow.store(false, Ordering::SeqCst);
        // The connections with answers are kept, the other one isn't.
        expect(&run_on(&mut engine, &all_at_once), &[("/connections/opened", 1)]);
    }
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
    for (service_s, ramp_up_s, window_s) in [(0.01, 0.1, 0.8), (0.1, 0.25, 0.8), (0.6, 0.9, 1.2)] {
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
        let more = json!({"ramp_up_s": ramp_up_s, "duration_s": window_s, "count": null,
                          "window_s": 0.05, "load": {"connections": 16}});
        let result = run(&site.order(1, more));
        let opens = *begun.get().expect("a request came") + Duration::from_secs_f64(ramp_up_s);
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
        let early = windows.iter().filter(|window| window["ramp_up"] == true).count();
        assert_eq!(early, (ramp_up_s / 0.05_f64).round() as usize, "{result:#}");
    }
}
