//! Who may ask at once, and for how long: a limited number of connections, each with one request, whose head must
//! be there soon and whose answer must be taken soon. More than that wait in the kernel's queue.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// How many connections are open at once. A browser opens six.
const MOST: usize = 64;

/// How long a request's head may take to arrive.
const HEAD: Duration = Duration::from_secs(10);

/// The largest head of a request, in bytes.
const HEAD_SIZE: usize = 64 << 10;

/// How long a connection may live, whatever it does. The page of a run that is under way asks for
/// its events again when they end.
const LIFE: Duration = Duration::from_secs(120);

/// Answers until the process ends.
pub async fn serve(listener: TcpListener, router: Router) -> std::io::Result<()> {
    let open = Arc::new(Semaphore::new(MOST));
    loop {
        let turn = open.clone().acquire_owned().await;
        let turn = turn.expect("nobody closes the semaphore");
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // One that went away again, or no descriptors for a moment: others still want answers.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .max_buf_size(HEAD_SIZE)
                .keep_alive(false);
            let answered = http.serve_connection(TokioIo::new(stream), service);
            let _ = tokio::time::timeout(LIFE, answered).await;
            drop(turn);
        });
    }
}
