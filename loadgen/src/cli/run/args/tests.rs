//! Which flags go together.

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    args: Args,
}

fn refusal(flags: &str) -> String {
    let words = std::iter::once("loadgen").chain(flags.split_whitespace());
    match Cli::try_parse_from(words) {
        Ok(cli) => cli.args.check().err().unwrap_or_default(),
        Err(error) => explain(error).to_string(),
    }
}

#[test]
fn contradictions_are_refused() {
    for (flags, message) in [
        ("u --rate 5 --stage 1s:5", "--stage"),
        ("u --replay f --times f", "--times"),
        ("u --conn-rate 5 --keepalive never", "--conn-rate"),
        ("u --times f --poisson", "--rate"),
        ("u --replay f --poisson", "--rate"),
        ("u --replay f --rate 5 --replay-speed 2", "--rate"),
        ("u --replay f --method HEAD", "--method"),
        ("u v --replay f", "takes one URL"),
        ("--traffic f --zipf 1", "--zipf"),
        ("--traffic f --header A:b", "--header"),
        ("--traffic f --expect-bytes 5", "--expect-bytes"),
        ("u --traffic f", "--traffic"),
        ("ws://u --message a --method PUT", "leave one out"),
        ("ws://u --binary", "--message"),
        ("ws://u http://v --message a", "goes over WebSocket"),
        ("ws://u --data a", "give --message"),
        ("u --cpus 0,1 -t 2", "--threads"),
        ("u --threads 3 --connections 2", "at least one"),
        ("u --cpus 0-4 --connections 2", "at least one"),
        ("u --hdr f --csv f", "overwrite"),
        ("u --hdr f --prometheus f", "--hdr and --prometheus"),
        ("u --streams 2", "--http2"),
        ("u --cert f", "--key"),
        ("u -4 -6", "--ipv6"),
        ("u -u a:b --bearer c", "--bearer"),
        ("u --once --rate 5", "--once"),
        ("--traffic f --compressed", "--compressed"),
        ("u --slow-rate 2", "--slow-readers"),
        ("u --replay-speed 2", "--replay"),
        ("u --requests-per-conn 2", "--conn-rate"),
        ("u --think-distribution constant", "--think"),
        ("u --poisson", "--rate"),
        ("u --log-every 5", "--log-requests"),
        ("u --burst 5", "--rate"),
        ("u --rate-per-conn 5 -n 5", "--rate-per-conn"),
        ("u --rate-per-conn 5 --rate 5", "--rate-per-conn"),
        ("u --times f --burst 5", "--rate"),
        ("u --conn-ramp 5s --rate 5", "--conn-ramp"),
        ("u --conn-ramp 5s -n 5", "--conn-ramp"),
        ("u --log-requests f --csv f", "--csv and --log-requests"),
        ("u --max-backlog 5", "--rate"),
        ("u --send-delay-budget 50us", "--rate"),
        ("u --rate 5 --send-delay-budget 11ms", "longer than 10 ms"),
        ("", "<URLS>"),
    ] {
        let said = refusal(flags);
        assert!(said.contains(message), "{flags}: {said}");
        assert_eq!(said.contains("cannot be used with"), said.contains("tip: "), "{said}");
    }
    for (flags, why) in [
        ("u --rate 5 --times f", "one timetable"),
        ("u --conn-rate 5 --keepalive never", "--requests-per-conn"),
        ("u --replay f --method HEAD --data x", "the log tells what"),
        ("u --replay f --zipf 1", "how often"),
        ("--traffic f --method HEAD --data x", "each request whole"),
    ] {
        let said = refusal(flags);
        assert!(said.split("tip: ").nth(1).is_some_and(|tip| tip.contains(why)), "{said}");
    }
    assert!(!refusal("u --rate 5 --rate 6").contains("tip: "));
    for good in [
        "u v --rate 5 --poisson -t 2 -c 2 --hdr f --csv g",
        "u --replay f --rate 5 --poisson",
        "u --times f --max-backlog 5 --send-delay-budget 50us",
        "u --rate 5 --send-delay-budget 0",
        "u --replay f --replay-speed 2 --max-backlog 5",
        "--traffic f",
        "u --rate-per-conn 5 --poisson --burst 2 -d 5s",
        "-X POST --tls-verify off -u me:x --compressed -4 --ramp-up 1s --once u",
        "--once --http2 u",
        "u --connect-to ::127.0.0.1:80 --resolve a:80:::1 --tls-version 1.2",
    ] {
        assert_eq!(refusal(good), "", "{good}");
    }
}
