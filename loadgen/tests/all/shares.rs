//! Several clients share one timetable: together they ask what one would.

use std::sync::{Arc, Mutex};

use loadgen::engine::schedule::{Due, DueTimes, Timetable};
use loadgen::order::parse::parse;
use serde_json::{Value, json};

use crate::support::{HELLO, Server, expect, order, run};

const RATE: f64 = 10_000.0;
const LENGTH_S: f64 = 2.0;
const SEED: u64 = 123;

fn share(index: u32) -> Value {
    json!({"of": 2, "index": index, "seed": SEED})
}

/// What a client with that part of the timetable takes off it.
fn taken(arrivals: &Value, share: Option<Value>) -> Vec<Due> {
    let mut load = json!({"loop": "open", "connections": 1, "arrivals": arrivals});
    // A lone client draws from its order's seed.
    let seed = if share.is_some() { 7 } else { SEED };
    if let Some(share) = share {
        load["arrivals"]["share"] = share;
    }
    let more = json!({"count": null, "seed": seed, "load": load});
    let order = parse(&order("http://127.0.0.1:1/", 1, more).to_string()).expect("a good order");
    let arrivals = order.load.arrivals.expect("an open loop");
    let due_times = DueTimes::new(&arrivals, order.count, order.seed);
    let table = Timetable::new(due_times, arrivals.max_backlog, 0..u64::MAX);
    std::iter::from_fn(|| table.take(0)).collect()
}

/// Those of two clients together, in order.
fn together(arrivals: &Value) -> Vec<Due> {
    let mut both = [taken(arrivals, Some(share(0))), taken(arrivals, Some(share(1)))].concat();
    both.sort_by_key(|due| (due.at_ns, due.number));
    both
}

/// Seconds between what follows each other, in order of their length.
fn gaps_s(places: &[Due]) -> Vec<f64> {
    let mut gaps: Vec<f64> =
        places.windows(2).map(|pair| (pair[1].at_ns - pair[0].at_ns) as f64 / 1e9).collect();
    gaps.sort_by(f64::total_cmp);
    gaps
}

/// The farthest that the distribution of gaps is from that of a Poisson process of the rate
/// (Kolmogorov and Smirnov).
fn distance_from_poisson(gaps_s: &[f64], rate: f64) -> f64 {
    let below = |index: usize| index as f64 / gaps_s.len() as f64;
    let distance = |(index, gap_s): (usize, &f64)| {
        let expected = 1.0 - (-rate * gap_s).exp();
        (expected - below(index)).abs().max((expected - below(index + 1)).abs())
    };
    gaps_s.iter().enumerate().map(distance).fold(0.0, f64::max)
}

fn of_rate(process: &str) -> Value {
    json!({"process": process, "stages": [{"rate_per_s": RATE, "for_s": LENGTH_S}]})
}

#[test]
fn two_shares_make_the_timetable_of_one_client() {
    let times_s: Vec<f64> = taken(&of_rate("poisson"), None)
        .iter()
        .map(|due| (due.at_ns / 1_000) as f64 / 1e6)
        .collect();
    for arrivals in [of_rate("constant"), of_rate("poisson"), json!({"times_s": times_s})] {
        let (one, both) = (taken(&arrivals, None), together(&arrivals));
        assert!((one.len() as f64 / (RATE * LENGTH_S) - 1.0).abs() < 0.03, "{}", one.len());
        assert_eq!(both, one);
        assert_eq!(gaps_s(&both), gaps_s(&one));
    }
}

#[test]
fn shares_of_an_even_timetable_are_even() {
    for index in 0..2 {
        let mine = taken(&of_rate("constant"), Some(share(index)));
        assert_eq!(mine.len() as f64, RATE * LENGTH_S / 2.0);
        assert!(gaps_s(&mine).iter().all(|gap_s| (gap_s * RATE / 2.0 - 1.0).abs() < 1e-4));
    }
}

#[test]
fn shares_of_a_poisson_process_are_poisson_processes() {
    let arrivals = of_rate("poisson");
    for index in 0..2 {
        let gaps_s = gaps_s(&taken(&arrivals, Some(share(index))));
        // Exceeded by chance once in a thousand times: 1.95 / √n.
        let limit = 1.95 / (gaps_s.len() as f64).sqrt();
        assert!(distance_from_poisson(&gaps_s, RATE / 2.0) < limit);
    }
    // A sum whose parts begin apart is still one; of clients in turns that would not hold.
    let mut apart = taken(&arrivals, Some(share(0)));
    let late = taken(&arrivals, Some(share(1)));
    apart.extend(late.iter().map(|due| Due { at_ns: due.at_ns + 300_000, ..*due }));
    apart.sort_by_key(|due| due.at_ns);
    let gaps_s = gaps_s(&apart);
    assert!(distance_from_poisson(&gaps_s, RATE) < 1.95 / (gaps_s.len() as f64).sqrt());
}

#[test]
fn requests_of_a_sequence_stay_with_their_times() {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&asked);
    let server = Server::start(move |mut client| {
        while let Some(head) = client.request() {
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            seen.lock().expect("whole").push(path);
            client.write(HELLO);
        }
    });
    let requests: Vec<Value> =
        ["a", "b", "c"].iter().map(|path| json!({"url": server.url() + path})).collect();
    for (index, wanted) in [(0, ["/a", "/c", "/b"]), (1, ["/b", "/a", "/c"])] {
        let arrivals =
            json!({"times_s": [0.0, 0.0, 0.01, 0.02, 0.03, 0.04], "share": share(index)});
        let load = json!({"loop": "open", "arrivals": arrivals});
        let more = json!({"count": null, "load": load, "requests": requests,
                          "sequence": [0, 1, 2, 0, 1, 2]});
        expect(&run(&order(&server.url(), 1, more)), &[("/requests/completed", 3)]);
        assert_eq!(std::mem::take(&mut *asked.lock().expect("whole")), wanted);
    }
}
