//! `ablate serve`: read-only, for this machine alone, and live. `ablate compare`: two runs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::browser::Browser;
use crate::lab::Lab;
use crate::report::{CLAIM, RESULTS};

/// A server that ends with the test.
pub struct Server {
    child: Child,
    /// `127.0.0.1:40123`
    pub host: String,
}

impl Server {
    pub fn start(lab: &Lab) -> Server {
        let mut child = lab
            .command(&["serve", "--port", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let host = line
            .strip_prefix("ablate: http://")
            .and_then(|rest| rest.split('/').next());
        let host = host.unwrap_or_else(|| panic!("{line}")).to_owned();
        Server { child, host }
    }

    /// The whole answer to a request.
    fn ask(&self, method: &str, path: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    }

    fn get(&self, path: &str) -> String {
        self.ask("GET", path, &self.host)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[test]
fn it_answers_this_machine_and_changes_nothing() {
    let lab = Lab::demo();
    let server = Server::start(&lab);
    let none = server.get("/");
    assert_eq!(status(&none), "500");
    assert!(
        none.contains("there is no store") || none.contains("no store"),
        "{none}"
    );
    assert!(!lab.path(".ablate").exists(), "looking makes no store");
    lab.run();
    let list = server.get("/");
    assert_eq!(status(&list), "200");
    assert!(list.contains("<a href=\"/run/1\">run 1</a>"), "{list}");
    let (head, _) = list.split_once("\r\n\r\n").unwrap();
    let head = head.to_lowercase();
    for header in [
        "content-security-policy: default-src 'none'; script-src 'sha256-",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
        "content-type: text/html; charset=utf-8",
    ] {
        assert!(head.contains(header), "{header}\n{head}");
    }
    assert!(
        !head.contains("unsafe-inline") && !head.contains("access-control"),
        "{head}"
    );
    assert!(
        server
            .get("/run/1")
            .contains("<h1>demo <small>run 1</small></h1>")
    );
    // Somebody else's name for this address, as a rebound DNS entry would give.
    let port = server.host.split(':').next_back().unwrap();
    for host in ["evil.example", &format!("evil.example:{port}"), "localhost"] {
        let answer = server.ask("GET", "/run/1", host);
        assert_eq!(status(&answer), "421", "{host}");
        assert!(!answer.contains("demo"), "{answer}");
    }
    assert_eq!(
        status(&server.ask("GET", "/", &format!("localhost:{port}"))),
        "200"
    );
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        assert_eq!(
            status(&server.ask(method, "/run/1", &server.host)),
            "405",
            "{method}"
        );
    }
    for path in [
        "/run/2",
        "/run/x",
        "/etc/passwd",
        "/../Cargo.toml",
        "/run/%3Cscript%3E",
    ] {
        let answer = server.get(path);
        assert_eq!(status(&answer), "404", "{path}");
        assert!(!answer.contains("<script>\"x"), "{answer}");
    }
    assert!(
        server
            .get("/run/%3Cscript%3E")
            .contains("No run &lt;script&gt;.")
    );
    // A page that was looked at does not keep the house from being swept.
    lab.ablate(&["gc"]).good();
}

/// Whoever sends half a request and waits does not keep a place for ever.
#[test]
fn half_a_request_is_not_waited_for() {
    let lab = Lab::demo();
    let server = Server::start(&lab);
    let mut half = TcpStream::connect(&server.host).unwrap();
    // Bounded, should it be waited for after all.
    half.set_read_timeout(Some(std::time::Duration::from_secs(60)))
        .unwrap();
    write!(half, "GET / HTTP/1.1\r\nHost: ").unwrap();
    let mut rest = Vec::new();
    half.read_to_end(&mut rest).expect("it is closed");
}

/// How many threads the server has.
fn threads(server: &Server) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("Threads:"));
    line.unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

/// Each page is made by a thread of its own, with a store of its own: there are few at a time.
#[test]
fn many_requests_at_once_are_answered_a_few_at_a_time() {
    let lab = Lab::demo();
    lab.run();
    let server = Server::start(&lab);
    let mut most = 0;
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..300)
            .map(|_| scope.spawn(|| server.get("/run/1")))
            .collect();
        for one in asking {
            assert_eq!(status(&one.join().unwrap()), "200");
            most = most.max(threads(&server));
        }
    });
    assert!(most < 16, "{most} threads");
}

#[test]
fn a_large_graph_is_shown_in_parts() {
    let stages = (0..501).map(|n| {
        let reads = match n {
            0 => String::new(),
            n => format!("inputs = {{ t = \"s{}\" }}\n", n - 1),
        };
        match n {
            0 => "[stage.s0]\nkind = \"table\"\nrows = [{ x = 1 }]\n".to_owned(),
            n => format!("[stage.s{n}]\nkind = \"sql\"\n{reads}query = \"SELECT x FROM t\"\n"),
        }
    });
    let lab = Lab::new(&stages.collect::<String>());
    lab.run();
    let server = Server::start(&lab);
    let shown = |page: &str| page.matches("<g class=\"stage ").count();
    let first = server.get("/run/1");
    assert_eq!(shown(&first), 500);
    assert!(first.contains("Stages 1 to 500 of 501."));
    assert!(first.contains("<a href=\"?part=1#graph\">Next</a>"));
    let second = server.get("/run/1?part=1");
    assert_eq!(shown(&second), 1);
    assert!(second.contains("Stages 501 to 501 of 501."));
    assert!(second.contains("<a href=\"?part=0#graph\">Previous</a>"));
    lab.ablate(&["report", "-o", "page.html"]).good();
    let page = std::fs::read_to_string(lab.path("page.html")).unwrap();
    assert!(shown(&page) >= 501 && !page.contains("id=\"graph-parts\""));
}

#[test]
fn a_port_that_is_taken_is_said() {
    let lab = Lab::demo();
    let server = Server::start(&lab);
    let port = server.host.split(':').next_back().unwrap();
    let printed = lab.ablate(&["serve", "--port", port]);
    assert_eq!(printed.code, 2);
    let first = printed.stderr.lines().next().unwrap();
    assert!(
        first.starts_with(&format!("error: cannot serve at {}: ", server.host)),
        "{first}"
    );
    assert!(
        printed
            .stderr
            .contains("--port names another port; 0 takes any that is free")
    );
}

#[test]
fn live_progress_moves() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let mut pipeline = String::from(
        "[pipeline]\nname = \"slow\"\n\n[stage.s0]\nkind = \"table\"\nrows = [{ x = 1 }]\n",
    );
    for n in 1..=6 {
        let before = n - 1;
        pipeline.push_str(&format!(
            "\n[stage.s{n}]\nkind = \"command\"\ninputs = {{ t = \"s{before}\" }}\noutputs = [\"t\"]\n\
             run = [\"sh\", \"-c\", \"sleep 0.5; cp $ABLATE_IN/t.parquet $ABLATE_OUT/t.parquet; : {n}\"]\n"
        ));
    }
    let lab = Lab::new(&pipeline);
    lab.ablate(&["run", "s2"]).good();
    let server = Server::start(&lab);
    browser.open(&format!("http://{}/", server.host));
    browser.until("document.documentElement.dataset.live === '1 ok 3'");
    let mut run = lab.start(&[]);
    // What was cached counts while the first stage that runs is at work.
    browser.until("document.documentElement.dataset.live === '2 under way 3'");
    let counts = browser.text("document.getElementById('live-counts').textContent");
    assert!(counts.starts_with("0 ran, 3 cached, "), "{counts}");
    // It is seen half done, and then whole.
    browser.until("/^2 under way [4-6]$/.test(document.documentElement.dataset.live)");
    let what = browser.text("document.getElementById('live-what').textContent");
    assert!(
        what.starts_with("run 2 of slow") && what.ends_with("of 7 stages"),
        "{what}"
    );
    assert_eq!(
        browser.number("document.getElementById('live-bar').max"),
        7.0
    );
    assert!(what.contains("run 2 of slow: under way, "), "{what}");
    // The list was made before this run began, and says so.
    assert_eq!(
        browser.ask("document.getElementById('live-stale').hidden"),
        serde_json::json!(false)
    );
    assert_eq!(browser.text(include_str!("browser/basics.js")), "");
    browser.screenshot("serve-live");
    browser.until("document.documentElement.dataset.live === '2 ok 7'");
    assert!(run.wait().unwrap().success());

    // Killed, it cannot say that it ends; the page does.
    let mut run = lab.start(&["--set", "s0.rows=[{x = 2}]"]);
    browser.until("/^3 under way [12]$/.test(document.documentElement.dataset.live)");
    run.kill().unwrap();
    run.wait().unwrap();
    browser.until("/^3 died [1-6]$/.test(document.documentElement.dataset.live)");
    let what = browser.text("document.getElementById('live-what').textContent");
    assert!(
        what.contains(": its process was killed or crashed, ") && what.ends_with(" of 7 stages"),
        "{what}"
    );
    let list = lab.ablate(&["runs", "-n", "1"]).good().stdout;
    assert!(list.contains("  died "), "{list}");
    assert!(server.get("/run/3").contains(">died</dd>"));
    assert_eq!(browser.errors(), Vec::<String>::new());
}

#[test]
fn equal_means_of_other_seeds_are_not_the_same() {
    let lab = Lab::new(RESULTS);
    lab.run();
    lab.edit("seed = 1, value = 0.80", "seed = 1, value = 0.85");
    lab.edit("seed = 2, value = 0.90", "seed = 2, value = 0.85");
    lab.run();
    let printed = lab.ablate(&["compare"]).good().stdout;
    let expected = "table accuracy, lstm, clean: was 0.850 ± 0.071, now 0.850 ± 0.000\n";
    assert!(printed.starts_with(expected), "{printed}");
}

#[test]
fn two_runs_are_compared_on_a_page_and_on_the_terminal() {
    let lab = Lab::new(RESULTS);
    lab.write("claims.toml", CLAIM);
    lab.run();
    lab.edit("seed = 2, value = 0.90", "seed = 2, value = 0.84");
    // The same number on fewer rows is not the same.
    lab.edit("value = 0.10, n = 10", "value = 0.10, n = 5");
    lab.run();
    let printed = lab.ablate(&["compare"]).good();
    assert_eq!(
        printed.stdout,
        "claim good: was reproduced, now not reproduced\n\
         table accuracy, lstm, clean: was 0.850 ± 0.071, now 0.820 ± 0.028 (−0.030 [−0.411, +0.351])\n\
         table accuracy, lstm, jsma: was 0.100, now 0.100; n was 10, now 5\n\
         ablate: 0 stages the same, 1 not in runs 1 and 2 (ablate diff 1 2)\n"
    );
    let printed = lab.ablate(&["compare", "1", "2", "--html"]).good();
    assert!(
        printed.stdout.starts_with("compare.html ("),
        "{}",
        printed.stdout
    );
    let html = std::fs::read_to_string(lab.path("compare.html")).unwrap();
    assert!(
        html.contains("It is &lt;good&gt;.") && html.contains("was 0.850"),
        "{html}"
    );
    let printed = lab.ablate(&["compare", "-o", "x.html"]);
    assert_eq!(printed.code, 2, "-o without --html");

    let Some(mut browser) = Browser::start() else {
        return;
    };
    let server = Server::start(&lab);
    browser.open(&format!("http://{}/", server.host));
    browser.click_until("#compare", "document.title === 'runs 1 and 2'");
    let tables = browser.text("document.getElementById('tables').innerText");
    assert!(
        tables.contains("was 0.850")
            && tables.contains("−0.030")
            && tables.contains("n was 10, now 5")
            && tables.contains("2 cells differ"),
        "{tables}"
    );
    let claims = browser.text("document.getElementById('claims').innerText");
    assert!(
        claims.contains("not reproduced") && claims.contains("It is <good>."),
        "{claims}"
    );
    let stages = browser.text("document.getElementById('stages').innerText");
    assert!(stages.contains("params.rows was"), "{stages}");
    assert_eq!(browser.text(include_str!("browser/basics.js")), "");
    browser.screenshot("serve-compare");
    assert_eq!(browser.errors(), Vec::<String>::new());
    // The report is the same page, served.
    browser.open(&format!("http://{}/run/2", server.host));
    browser.click("button[data-cell='0']");
    browser.until("document.getElementById('panel').open");
    assert_eq!(browser.errors(), Vec::<String>::new());
}
