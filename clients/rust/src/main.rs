//! A trainer's reader in Rust: streams the batches of one consumer, prints what is in each, acknowledges it.
//!
//!     cargo run --release http://127.0.0.1:8070 my-consumer [BATCHES [columns]]
//!
//! Ends after BATCHES of them; without that number it runs until it is stopped. With `columns` each column of a batch is
//! one array.
use std::{env, error::Error};

use generated::polar::reconstructor::v1::trajectory_service_client::TrajectoryServiceClient;
use generated::polar::reconstructor::v1::{
    AckTrajectoriesRequest, Layout, StreamTrajectoriesRequest, TrajectoryBatch,
};
use tonic::{transport::Endpoint, Request, Status};

mod columns;
mod tls;

/// What is generated from proto/.
#[allow(dead_code, clippy::all)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/generated.rs"));
}

/// A batch holds a whole group: hundreds of megabytes where its traces are long.
const MESSAGE_BYTES_MAX: usize = 2 << 30;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(url), Some(consumer)) = (arguments.next(), arguments.next()) else {
        return Err("usage: reader URL CONSUMER [BATCHES [columns]]".into());
    };
    let batches = arguments.next().map_or(Ok(usize::MAX), |text| text.parse())?;
    let columns = arguments.next().is_some_and(|word| word == "columns");
    let layout = if columns { Layout::Columns } else { Layout::Traces }.into();
    read(url, StreamTrajectoriesRequest { consumer, layout, ..Default::default() }, batches).await
}

async fn read(url: String, request: StreamTrajectoriesRequest, batches: usize) -> Result<(), Box<dyn Error>> {
    // Wide windows keep large messages moving.
    let endpoint = Endpoint::from_shared(url)?
        .initial_stream_window_size(4 << 20)
        .initial_connection_window_size(16 << 20);
    let channel = tls::secured(endpoint)?.connect().await?;
    let mut client = TrajectoryServiceClient::with_interceptor(channel, with_token)
        .max_decoding_message_size(MESSAGE_BYTES_MAX);
    let consumer = request.consumer.clone();
    let mut stream = client.stream_trajectories(request).await?.into_inner();
    let mut left = batches;
    while left > 0 {
        let Some(message) = stream.message().await? else {
            break;
        };
        // A message without a batch is progress: the server is alive and has nothing new.
        let Some(batch) = message.batch else { continue };
        println!("{}", describe(&batch));
        // Here a trainer runs its step; only then does it acknowledge.
        let batch_ids = vec![batch.batch_id];
        let ack = AckTrajectoriesRequest { consumer: consumer.clone(), batch_ids, seeks: Some(message.seeks) };
        client.ack_trajectories(ack).await?;
        left -= 1;
    }
    Ok(())
}

/// $POLAR_TOKEN goes with each call where it is set.
fn with_token(mut request: Request<()>) -> Result<Request<()>, Status> {
    if let Ok(token) = env::var("POLAR_TOKEN") {
        let value = format!("Bearer {token}").parse().map_err(|_| Status::unauthenticated("POLAR_TOKEN"))?;
        request.metadata_mut().insert("authorization", value);
    }
    Ok(request)
}

fn describe(batch: &TrajectoryBatch) -> String {
    // One of the two is empty, by the layout that was asked for.
    let sessions = batch.trajectories.len() + batch.columns.as_ref().map_or(0, |all| all.outcomes.len());
    let traces = columns::traces(batch);
    let ids: usize = traces.iter().map(|one| (one.prompt_ids.len() + one.response_ids.len()) / 4).sum();
    let trained: u64 = traces.iter().flat_map(|one| one.loss_mask).map(|mask| u64::from(*mask)).sum();
    let TrajectoryBatch { batch_id, task_id, group_id, redelivered, .. } = batch;
    format!(
        "batch {batch_id}: task {task_id}, group {group_id}, {sessions} sessions, {} traces, {ids} ids, {trained} trained, \
         redelivered {redelivered}",
        traces.len(),
    )
}
