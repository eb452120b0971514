//! Users who log in, and flows of requests that follow from each other.

mod shop;

use serde_json::{Value, json};
use shop::Shop;

use loadgen::engine::Plan;
use loadgen::order::parse::parse;

use crate::support::{engine, expect, number, run_on};

fn people(count: usize) -> Value {
    let rows: Vec<_> = (0..count).map(|n| json!([format!("u{n}"), format!("pw&u{n}")])).collect();
    json!({"rows": {"columns": ["name", "password"], "rows": rows, "each": "user"}})
}

/// Gets the form, takes its token, and posts it with name and password.
fn login(shop: &Shop) -> Value {
    json!([
        {"url": shop.url("/login"),
         "capture": {"csrf": {"css": "#login input[name=csrf]"}}},
        {"url": shop.url("/login"), "method": "POST", "expect": {"status": [302]},
         "headers": {"Content-Type": "application/x-www-form-urlencoded"},
         "body": "user={{who.name}}&password={{who.password}}&csrf={{csrf}}"},
    ])
}

/// A list, a choice, an order and a look at it.
fn flow(shop: &Shop) -> Vec<Value> {
    let item = json!({"item": {"json": "$.items[0].id"}});
    let order = json!({"order": {"header": "X-Order"}});
    vec![
        json!({"url": shop.url("/items"), "flow": "buy", "endpoint": "list", "capture": item}),
        json!({"url": shop.url("/cart"), "method": "POST", "flow": "buy", "endpoint": "cart",
               "headers": {"Content-Type": "application/json"},
               "body": "{\"item\": \"{{item}}\", \"label\": \"{{label}}\"}",
               "expect": {"status": [201]}, "capture": order}),
        json!({"url": shop.url("{{order}}"), "flow": "buy", "endpoint": "look",
               "expect": {"contains": ["Thank"]}}),
    ]
}

fn order(requests: Vec<Value>, session: Value, connections: u32, count: u64) -> Value {
    json!({
        "id": "test", "requests": requests, "session": session, "count": count,
        "load": {"loop": "closed", "connections": connections, "timeout_s": 5.0},
    })
}

fn refusal(order: &Value) -> String {
    let plan = Plan::new(parse(&order.to_string()).expect("a good order")).expect("a plan");
    let outcome = engine(1).run(&std::sync::Arc::new(plan), &mut ());
    outcome.expect_err("a login that fails").to_string()
}

#[test]
fn a_thousand_users_log_in_with_a_row_each() {
    let shop = Shop::open();
    let home = json!({"url": shop.url("/home"), "expect": {"contains": ["Welcome u"]}});
    let session = json!({"login": login(&shop), "values": {"who": people(1000)}});
    let result = run_on(&mut engine(3), &order(vec![home], session, 1000, 3000));
    expect(&result, &[("/requests/sent", 3000), ("/requests/completed", 3000)]);
    expect(&result, &[("/by_status/200", 3000), ("/whole/sent", 3000)]);
    assert_eq!(shop.count("form"), 1000);
    assert_eq!(shop.with(|books| books.logins.len()), 1000);
    assert!(shop.with(|books| books.logins.values().all(|many| *many == 1)));
    assert_eq!(shop.count("home"), 3000);
}

#[test]
fn a_flow_is_measured_by_step_and_as_a_whole() {
    let shop = Shop::open();
    let values = json!({"who": people(5), "label": {"unique": {}}});
    let session = json!({"login": login(&shop), "values": values});
    let result = run_on(&mut engine(2), &order(flow(&shop), session, 5, 200));
    expect(&result, &[("/requests/sent", 600), ("/requests/completed", 600)]);
    for what in ["items", "cart", "order"] {
        assert_eq!(shop.count(what), 200, "{what}");
    }
    let named = |name: &str| {
        let all = result["endpoints"].as_array().expect("endpoints");
        all.iter().find(|it| it["endpoint"] == name).expect("an endpoint").clone()
    };
    for name in ["list", "cart", "look", "buy"] {
        expect(&named(name), &[("/completed", 200), ("/failed", 0)]);
    }
    let mean = |name: &str| named(name)["latency_us"]["mean"].as_f64().expect("a mean");
    let sum: f64 = ["list", "cart", "look"].iter().map(|name| mean(name)).sum();
    assert!((mean("buy") / sum - 1.0).abs() < 0.01, "{} {sum}", mean("buy"));
    let labels = shop.with(|books| books.labels.clone());
    assert_eq!(labels.iter().collect::<std::collections::HashSet<_>>().len(), 200);
}

#[test]
fn flows_come_at_a_rate() {
    let shop = Shop::open();
    let session = json!({"login": login(&shop), "values": {"who": people(8)}});
    let mut order = order(flow(&shop), session, 8, 300);
    let stages = json!({"process": "constant", "stages": [{"rate_per_s": 1000.0}]});
    order["load"]["loop"] = json!("open");
    order["load"]["arrivals"] = stages;
    let result = run_on(&mut engine(2), &order);
    expect(&result, &[("/requests/completed", 900)]);
    order["count"] = Value::Null;
    order["load"]["arrivals"]["stages"][0]["rate_per_s"] = json!(200.0);
    (order["ramp_up_s"], order["duration_s"]) = (json!(0.2), json!(0.5));
    order["requests"][1]["think"] = json!({"mean_s": 0.02});
    let result = run_on(&mut engine(2), &order);
    let whole = result["endpoints"].as_array().and_then(|all| all.last()).expect("the flow");
    assert_eq!(whole["endpoint"], "buy");
    // All that were due in the window are told of, pauses and all.
    expect(whole, &[("/completed", 100), ("/failed", 0)]);
}

#[test]
fn users_of_a_key_stay_logged_in() {
    let shop = Shop::open();
    let home = json!({"url": shop.url("/home")});
    let mut session = json!({"login": login(&shop), "values": {"who": people(4)}, "key": "a"});
    let mut engine = engine(2);
    let mut run = |session: &Value| {
        let result = run_on(&mut engine, &order(vec![home.clone()], session.clone(), 4, 20));
        expect(&result, &[("/requests/completed", 20), ("/whole/sent", 20)]);
        shop.with(|books| books.logins.values().sum::<u64>())
    };
    assert_eq!(run(&session), 4);
    assert_eq!(run(&session), 4);
    session["key"] = json!("b");
    assert_eq!(run(&session), 8);
    session["key"] = Value::Null;
    assert_eq!((run(&session), run(&session)), (12, 16));
}

#[test]
fn logging_in_is_an_order_of_its_own() {
    let shop = Shop::open();
    let mut session = json!({"login": login(&shop), "values": {"who": people(4)}, "key": "a"});
    let home = vec![json!({"url": shop.url("/home")})];
    let mut engine = engine(1);
    session["only_login"] = json!(true);
    let plan = order(home.clone(), session.clone(), 4, 1).to_string();
    let plan = Plan::new(parse(&plan).expect("an order")).expect("a plan");
    engine.log_in(&std::sync::Arc::new(plan)).expect("all are let in");
    assert_eq!(shop.count("home"), 0);
    session["only_login"] = json!(false);
    let result = run_on(&mut engine, &order(home, session, 4, 8));
    // Its connections are those of the login, too.
    expect(&result, &[("/requests/completed", 8), ("/connections/opened", 0)]);
    assert_eq!(shop.with(|books| books.logins.values().sum::<u64>()), 4);
}

#[test]
fn a_token_in_json_goes_into_a_header() {
    let shop = Shop::open();
    let login = json!([{
        "url": shop.url("/token"), "method": "POST",
        "headers": {"Accept-Encoding": "gzip", "Content-Type": "application/json"},
        "body": "{\"user\": \"{{who.name}}\", \"password\": \"{{who.password}}\"}",
        "capture": {"token": {"json": "$.data[0].token"}},
    }]);
    let home = json!({"url": shop.url("/home"), "headers": {"Authorization": "Bearer {{token}}"}});
    let session = json!({"login": login, "values": {"who": people(3)}});
    let result = run_on(&mut engine(1), &order(vec![home.clone()], session.clone(), 3, 30));
    expect(&result, &[("/requests/completed", 30)]);
    shop.with(|books| books.patience = Some(10));
    let result = run_on(&mut engine(1), &order(vec![home], session, 3, 30));
    expect(&result, &[("/by_status/401", 21), ("/failures/status", 21)]);
    let sample = result["failure_samples"][0].as_str().expect("a sample");
    assert!(
        sample.contains("status 401 instead of 2xx") && sample.contains("token expired"),
        "{sample}"
    );
}

#[test]
fn who_is_not_let_in_is_named_with_the_answer() {
    let shop = Shop::open();
    let home = || vec![json!({"url": shop.url("/home")})];
    let mut session = json!({"login": login(&shop), "values": {"who": people(6)}});
    session["values"]["who"]["rows"]["rows"][3][1] = json!("wrong");
    let why = refusal(&order(home(), session.clone(), 6, 10));
    assert!(why.starts_with("login of user 4, step 2 of 2: POST http://"), "{why}");
    assert!(why.contains("status 200 instead of 302"), "{why}");
    assert!(why.contains("beginning with: <p>Wrong name or password</p>"), "{why}");
    assert_eq!(shop.count("home"), 0);
    session["values"]["who"] = people(6);
    session["login"][0]["capture"]["csrf"] = json!({"css": "input[name=nope]"});
    let why = refusal(&order(home(), session.clone(), 6, 10));
    assert!(why.contains("step 1 of 2: GET"), "{why}");
    assert!(why.contains("there is no {{csrf}} (css input[name=nope]) in it"), "{why}");
    // The right token, but encoded as nothing has to be.
    session["login"] = login(&shop);
    session["login"][1]["headers"] = json!({"Content-Type": "text/plain"});
    let why = refusal(&order(home(), session, 1, 10));
    assert!(why.contains("status 403") && why.contains("CSRF token missing"), "{why}");
}

#[test]
fn a_server_that_is_not_there_ends_the_login() {
    let shop = Shop::open();
    let session = json!({"login": [{"url": "http://127.0.0.1:1/"}], "values": {}});
    let mut order = order(vec![json!({"url": "http://127.0.0.1:1/"})], session, 2, 10);
    order["load"]["timeout_s"] = json!(0.2);
    assert!(refusal(&order).contains("connect to 127.0.0.1:1"), "{}", refusal(&order));
    order["requests"][0]["url"] = json!(shop.url("/"));
    let plan = Plan::new(parse(&order.to_string()).expect("an order"));
    assert!(plan.is_err_and(|why| why.contains("go to one server")));
}

#[test]
fn a_step_that_fails_ends_its_flow() {
    let shop = Shop::open();
    let session = json!({"login": login(&shop), "values": {"who": people(2)}});
    let mut requests = flow(&shop);
    requests[1]["body"] = json!("{\"item\": \"none\"}");
    let result = run_on(&mut engine(1), &order(requests, session, 2, 50));
    expect(&result, &[("/requests/completed", 50), ("/failures/status", 50)]);
    let whole = result["endpoints"].as_array().and_then(|all| all.last()).expect("the flow");
    expect(whole, &[("/completed", 0), ("/failed", 50)]);
    let sample = result["failure_samples"][0].as_str().expect("a sample");
    assert!(sample.starts_with("POST http://") && sample.contains("/cart: status 409"), "{sample}");
    assert!(sample.contains("you were never offered this"), "{sample}");
    assert_eq!(shop.count("order"), 0);
}

#[test]
fn connections_that_close_lose_no_user() {
    let shop = Shop::open();
    let session = json!({"login": login(&shop), "values": {"who": people(3)}});
    let mut order = order(flow(&shop), session, 3, 30);
    order["load"]["keepalive"] = json!("never");
    let result = run_on(&mut engine(1), &order);
    expect(&result, &[("/requests/completed", 90)]);
    assert_eq!(number(&result, "/connections/opened"), 90 + 6);
}

#[test]
fn all_answers_are_told_whole() {
    let shop = Shop::open();
    let mut session = json!({"login": login(&shop), "values": {"who": people(1)}});
    let trace = |session: &Value| {
        let mut order = order(flow(&shop), session.clone(), 1, 1);
        order["trace"] = json!({});
        let plan = Plan::new(parse(&order.to_string()).expect("an order")).expect("a plan");
        engine(1).trace(&std::sync::Arc::new(plan)).expect("answers")
    };
    let traced = trace(&session);
    let told: Vec<_> = traced.iter().map(|it| (it.request, it.status)).collect();
    assert_eq!(told, [(3, 200), (4, 302), (0, 200), (1, 201), (2, 200)]);
    assert!(traced[2].body.starts_with(b"{\"items\": [{\"id\""));
    assert_eq!(traced[4].body, b"Thank you");
    assert_eq!(traced[2].captured[0].0, "item");
    assert!(traced.iter().all(|it| it.failure.is_none()));
    session["values"]["who"]["rows"]["rows"][0][1] = json!("wrong");
    let traced = trace(&session);
    assert_eq!((traced.len(), traced[1].status), (2, 200));
    assert!(traced[1].body.starts_with(b"<p>Wrong"));
    assert!(traced[1].failure.as_ref().is_some_and(|why| why.contains("instead of 302")));
}
