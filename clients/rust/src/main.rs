//! A trainer's reader in Rust: streams the batches of one consumer, prints what is in each, acknowledges it.
//!
//!     cargo run --release http://127.0.0.1:8070 my-consumer [BATCHES]
//!
//! Ends after BATCHES of them; without that number it runs until it is stopped.
use std::{env, error::Error};

use polar::reconstructor::v1::trajectory_service_client::TrajectoryServiceClient;
use polar::reconstructor::v1::{AckTrajectoriesRequest, StreamTrajectoriesRequest, TrajectoryBatch};
use tonic::{transport::Endpoint, Request, Status};

mod tls;

/// The generated modules, nested as the packages are: the code of one names another by its place.
#[allow(dead_code, clippy::all)]
mod polar {
    pub mod common {
        pub mod v1 {
            tonic::include_proto!("polar.common.v1");
        }
    }
    pub mod reconstructor {
        pub mod v1 {
            tonic::include_proto!("polar.reconstructor.v1");
        }
    }
}

/// A batch holds a whole group: hundreds of megabytes where its traces are long.
const MESSAGE_BYTES_MAX: usize = 2 << 30;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(url), Some(consumer)) = (arguments.next(), arguments.next()) else {
        return Err("usage: reader URL CONSUMER [BATCHES]".into());
    };
    let batches = arguments.next().map_or(Ok(usize::MAX), |text| text.parse())?;
    read(url, consumer, batches).await
}

async fn read(url: String, consumer: String, batches: usize) -> Result<(), Box<dyn Error>> {
    // Wide windows keep large messages moving.
    let endpoint = Endpoint::from_shared(url)?
        .initial_stream_window_size(4 << 20)
        .initial_connection_window_size(16 << 20);
    let channel = tls::secured(endpoint)?.connect().await?;
    let mut client = TrajectoryServiceClient::with_interceptor(channel, with_token)
        .max_decoding_message_size(MESSAGE_BYTES_MAX);
    let request = StreamTrajectoriesRequest { consumer: consumer.clone(), ..Default::default() };
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
    let traces = || batch.trajectories.iter().flat_map(|one| &one.traces);
    let ids: usize = traces().map(|one| (one.prompt_ids.len() + one.response_ids.len()) / 4).sum();
    let trained: u64 = traces().flat_map(|one| &one.loss_mask).map(|mask| u64::from(*mask)).sum();
    format!(
        "batch {}: task {}, group {}, {} sessions, {} traces, {ids} ids, {trained} trained, redelivered {}",
        batch.batch_id,
        batch.task_id,
        batch.group_id,
        batch.trajectories.len(),
        traces().count(),
        batch.redelivered,
    )
}
