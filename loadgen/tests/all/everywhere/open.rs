//! Open loops.

use std::time::Duration;

use serde_json::{Value, json};

use super::{ALL, BODY, COUNT, Layer, OF_TCP, Session, Site};
use crate::support::{Server, engine, expect, number, order, run, run_on};

fn open(rate: f64, more: Value) -> Value {
    let mut load = json!({"loop": "open", "connections": 4,
                          "arrivals": {"stages": [{"rate_per_s": rate}]}});
    for (key, value) in more.as_object().into_iter().flatten() {
        load[key] = value.clone();
    }
    json!({"load": load})
}

#[test]
fn an_open_loop_sends_what_is_due_and_omits_nothing() {
    for (layer, budget_s) in with_budgets() {
        let site = Site::answering(layer);
        let load = open(1000.0, json!({"send_delay_budget_s": budget_s}));
        let result = run_on(&mut engine(2), &site.order(200, load));
        expect(&result, &[("/requests/completed", 200), ("/latency_us/count", 200)]);
        expect(&result, &[("/requests/dropped", 0), ("/client/threads", 2)]);
        let site = Site::start(layer, |session, _| while session.next().is_some() {});
        let load = json!({"connections": 2, "timeout_s": 0.6, "send_delay_budget_s": budget_s});
        let mut more = open(100.0, load);
        (more["count"], more["duration_s"]) = (Value::Null, json!(0.3));
        let result = run(&site.order(1, more));
        expect(
            &result,
            &[
                ("/requests/sent", 2),
                ("/requests/unanswered", 2),
                ("/requests/unsent", 28),
                ("/latency_us/count", 30),
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
    for layer in OF_TCP {
        let site = Site::start(layer, |session, _| {
            while let Some(id) = session.next() {
                std::thread::sleep(Duration::from_millis(2));
                session.answer(id, 200, BODY);
            }
        });
        let mut engine = engine(1);
        let mut run = |budget_s: f64| {
            let load = json!({"connections": 16, "send_delay_budget_s": budget_s});
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
    for layer in OF_TCP {
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
    for layer in OF_TCP {
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
    let more = open(200.0, json!({"connections": 16, "send_delay_budget_s": 0.01}));
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

/// With a ramp-up, times are those of the requests that were due in the window: none is left out,
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
        let mut more = open(50.0, json!({"connections": 30, "send_delay_budget_s": budget_s}));
        (more["ramp_up_s"], more["duration_s"], more["count"]) =
            (json!(0.4), json!(0.5), Value::Null);
        let result = run_on(&mut engine(2), &site.order(1, more));
        expect(&result, &[("/latency_us/count", 25), ("/requests/unsent", 0)]);
        expect(&result, &[("/service_time_us/count", 25)]);
        assert!(result["latency_us"]["min"].as_f64() >= Some(199_000.0), "{result:#}");
        let of = |path: &str| number(&result, path);
        assert_eq!(of("/requests/drained"), of("/requests/unanswered"), "{result:#}");
        assert!(of("/requests/unanswered") >= 5, "{result:#}");
        let ends = of("/requests/completed") + of("/requests/unanswered");
        assert_eq!(of("/requests/sent") + of("/requests/carried"), ends, "{result:#}");
    }
}
