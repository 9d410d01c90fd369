// Limits that are not in the topology file, nor in the one file that keeps them. What happens at each is said beside it.

/** Largest message body over Connect; above: RESOURCE_EXHAUSTED. */
export const RPC_BODY_BYTES_MAX = 32 * 1024 * 1024;
/** Largest task spec, uploads included; above: INVALID_ARGUMENT at submit. */
export const TASK_SPEC_BYTES_MAX = 16 * 1024 * 1024;
/** Files of one upload_dir step; above: INVALID_TASK. */
export const UPLOAD_FILES_MAX = 10_000;
/** Largest body in a NATS message; above it goes to the blob store with a claim check. */
export const INLINE_BYTES_MAX = 256 * 1024;
/** Size of one chunk of a blob. */
export const BLOB_CHUNK_BYTES = 512 * 1024;
/** Largest blob; above: RESOURCE_EXHAUSTED. */
export const BLOB_BYTES_MAX = 256 * 1024 * 1024;
/** Blobs that one process writes at once, and that it reads at once; more wait. */
export const BLOBS_IN_FLIGHT_MAX = 4;
/** The same of small ones: written, up to SMALL_PUT_BYTES_MAX (nats/blobs.ts); read, up to a chunk. */
export const SMALL_BLOBS_IN_FLIGHT_MAX = 64;
/** Wait for one direct read while nothing comes in; then its connection is made anew, and it is asked for again. */
export const DIRECT_READ_MS = 5_000;
/** Wait for one publish to be acknowledged before it is sent again under the same id. */
export const PUBLISH_ACK_MS = 500;
/** Wait for one read of a cursor, or of the trajectory stream, to be answered before it is sent again. */
export const STREAM_READ_MS = 2_000;
/** All tries of one publish together; then NATS_UNAVAILABLE. Longer than an R3 election. */
export const PUBLISH_TOTAL_MS = 30_000;
/** Wait between two tries of a publish. */
export const PUBLISH_PAUSE_MS = 100;
/** Wait for NATS at the start of a service; then the boot fails with NATS_UNAVAILABLE. */
export const NATS_BOOT_MS = 10_000;
/** What a closing connection gives its last messages to go out. */
export const NATS_FLUSH_MS = 1_000;
/** Work not confirmed within this comes again; `working()` is sent at a third of it. */
export const WORK_ACK_WAIT_MS = 10_000;
/** Messages asked for in one pull. */
export const PULL_MESSAGES_MAX = 256;
/** One pull for work; then it is asked for again. */
export const WORK_PULL_MS = 5_000;
/** Deliveries of one work message; then it is dead-lettered and its attempt fails. */
export const WORK_DELIVERIES_MAX = 5;
/** Pause before a failed work message comes again, times the delivery count. */
export const WORK_RETRY_PAUSE_MS = 500;
/** Heartbeats missed for this long: the node is lost. */
export const NODE_LOST_MS = 7_000;
/** A node that has had no answer to its heartbeat for this long removes its sandboxes itself. Longer than a take-over. */
export const NODE_FENCE_MS = 6_000;
/** Time between an attempt that failed for infrastructure and the next, times the attempt. */
export const ATTEMPT_BACKOFF_MS = 500;
/** What a stage may take beyond its budget before the scheduler gives the attempt up. */
export const STAGE_GRACE_MS = 30_000;
/** Sessions of tasks that are not in the archive yet; above: RESOURCE_EXHAUSTED at submit. */
export const LIVE_SESSIONS_MAX = 200_000;
/** Changes waiting for the state log; above, RPCs are refused with RESOURCE_EXHAUSTED. */
export const STATE_QUEUE_MAX = 10_000;
/** Size of one commit. */
export const COMMIT_BYTES_MAX = 512 * 1024;
/** Commits between two snapshots of the scheduler's state. */
export const COMMITS_PER_SNAPSHOT = 5_000;
/** Bytes of commits between two snapshots, whichever comes first; well below what POLAR_STATE holds. */
export const COMMIT_BYTES_PER_SNAPSHOT = 128 * 1024 * 1024;
/** Commits read at once when a scheduler takes over: with COMMIT_BYTES_MAX each, what the server may have to hold. */
export const COMMITS_READ_AT_ONCE_MAX = 32;
/** Tries to take over the state log from a scheduler that still writes, and to read it while that one purges. */
export const TAKE_OVER_TRIES_MAX = 100;
/** Time between two looks whether the state log answers. */
export const STATE_LOG_CHECK_MS = 1_000;
/** A lease that nobody has renewed for this long of an observer's own clock is free. */
export const LEASE_MS = 3_000;
/** Its holder counts on it for this long from before it was renewed: less, so that two never do at once. */
export const LEASE_HELD_MS = 2_400;
/** Time between two renewals. */
export const LEASE_RENEW_MS = 750;
/** Time between two looks of a scheduler that follows. */
export const LEASE_POLL_MS = 200;
/** What a call of another service waits for a scheduler that takes over; then it fails as the last try did. */
export const TAKE_OVER_WAIT_MS = 8_000;
/** Work whose commit is at most this much older than the log's last one may not be sent; a take-over sends it again. */
export const WORK_RESEND_MS = 60_000;
/** Longest wait of a take-over for the facts that came before it; only then is work sent again. */
export const FACTS_BACKLOG_MS = 15_000;
/** Facts handled at once; the stream holds the rest. */
export const FACTS_AT_ONCE_MAX = 256;
/** Work messages, stop signals and announcements being published at once; more wait. */
export const SIDE_EFFECTS_AT_ONCE_MAX = 256;
/** First pause before a side effect that failed is tried again, while the session still needs it. */
export const SIDE_EFFECT_PAUSE_MS = 1_000;
/** What a task that was cancelled ahead of its submit is refused for. */
export const TOMBSTONE_MS = 3_600_000;
/** Such tasks that are remembered; above, the one of longest ago is forgotten. */
export const TOMBSTONES_MAX = 10_000;
/** Queues that the topology does not name and whose run time is remembered; above, that of longest ago is forgotten. */
export const QUEUES_REMEMBERED_MAX = 1_000;
/** Time between two looks at the queue budgets of sessions. */
export const QUEUE_CHECK_MS = 1_000;
/** Longest wait of one long poll; the caller asks again. */
export const LONG_POLL_MAX_MS = 60_000;
/** One try of a callback; then it counts as failed. */
export const CALLBACK_TIMEOUT_MS = 10_000;
/** Tries of a callback; then it is given up. */
export const CALLBACK_TRIES_MAX = 10;
/** Pause after the first failed try of a callback; doubled after each further one. */
export const CALLBACK_PAUSE_MS = 1_000;
/** Callbacks on their way at once; more wait. */
export const CALLBACKS_AT_ONCE_MAX = 16;
/** Sessions that one callback lists; the others are read by ListSessions. */
export const CALLBACK_SESSIONS_MAX = 1_000;
/** A point of dispatch_priority goes before what was submitted this much earlier; so nothing waits for ever behind it. */
export const PRIORITY_AGE_STEP_MS = 600_000;
/** Time between two looks at stage deadlines and lost nodes, and at attempts that may go again. */
export const SCHEDULER_TICK_MS = 250;
/** A node without heartbeats for this long is forgotten. */
export const NODE_FORGET_MS = 3_600_000;
/** Sessions of one task; above: INVALID_TASK. */
export const SAMPLES_PER_TASK_MAX = 16_384;
/** Tasks of one batch, and their sessions; above: INVALID_TASK. Its commit is at most COMMIT_BYTES_MAX. */
export const BATCH_TASKS_MAX = 1_000;
export const BATCH_SESSIONS_MAX = 16_384;
/** A task spec without its file contents: what the scheduler keeps in memory; above: INVALID_TASK. */
export const TASK_OUTLINE_BYTES_MAX = 384 * 1024;
/** Specs of these tasks; above: RESOURCE_EXHAUSTED at submit. */
export const LIVE_SPECS_BYTES_MAX = 96 * 1024 * 1024;
/** Ended sessions in one message of the archive: what is read to show one of them. Part of the stored form. */
export const ARCHIVE_PAGE_SESSIONS = 256;
/** Archived tasks read at once for a list. */
export const ARCHIVE_READS_AT_ONCE = 32;
/** Specs with uploads that are kept from one work message to the next. */
export const SPECS_CACHED_MAX = 4;
/** Length of a failure's message on a session; longer ones are cut. */
export const FAILURE_MESSAGE_CHARS_MAX = 4_096;
/** Length of a client's request_id. */
export const REQUEST_ID_CHARS_MAX = 128;
/** Length of a page where the request does not say. */
export const PAGE_SIZE_DEFAULT = 100;
/** Longest page; above: INVALID_REQUEST. */
export const PAGE_SIZE_MAX = 1_000;
/** Progress message on a quiet stream. */
export const STREAM_PROGRESS_MS = 10_000;
/** Changes that a slow watcher may have waiting; above, its stream ends with ABORTED and it calls again. */
export const WATCH_QUEUE_MAX = 10_000;
/** A call to another service of the node that answers at once. */
export const RPC_TIMEOUT_MS = 30_000;
/** What a stopping service gives its calls in flight; then they are cut. */
export const STOP_GRACE_MS = 5_000;
/** After this a stopping process ends whatever is left. */
export const STOP_FORCE_MS = 10_000;
/** What an exec may take to tell its result beyond its command's limit; then RUNTIME_LOST. */
export const EXEC_REPLY_GRACE_MS = 15_000;
/** Output of one exec that is kept, a stream; more is dropped and counted. */
export const EXEC_OUTPUT_BYTES_MAX = 4 * 1024 * 1024;
/** Standard input of one exec. */
export const EXEC_STDIN_BYTES_MAX = 1024 * 1024;
/** A file read from a sandbox. */
export const SANDBOX_FILE_BYTES_MAX = 8 * 1024 * 1024;
/** Body of a harness's model call; above: 413. */
export const PROXY_BODY_BYTES_MAX = 32 * 1024 * 1024;
/** Request bodies kept for the next ones to be read against, all attempts together; above, the longest unused is read whole. */
export const KNOWN_BODIES_BYTES_MAX = 128 * 1024 * 1024;
/** Of them in one attempt: its main conversation, and some of sub-agents beside it. */
export const KNOWN_BODIES_PER_ATTEMPT_MAX = 4;
/** A request from its first byte to its last; then it is cut, of HTTP/1 its connection. Answers have no such limit. */
export const HTTP_REQUEST_MS = 300_000;
/** A new connection, until its first bytes tell HTTP/1 from HTTP/2; then it is cut. */
export const HTTP_SILENT_MS = 10_000;
/** The head of an HTTP/1 request. */
export const HTTP_HEAD_MS = 60_000;
/** An HTTP/1 connection between two requests. Longer than clients keep theirs, so that none calls on one that is closing. */
export const HTTP_IDLE_MS = 620_000;
/** A model call from its place at an engine to its last byte, whole or streamed. */
export const ENGINE_CALL_MS = 3_600_000;
/** Of an engine's reply, read ahead of a harness that does not read; above, the engine waits. */
export const ENGINE_READ_AHEAD_BYTES_MAX = 1024 * 1024;
/** Connections to one engine that are kept for later calls; more are closed. */
export const ENGINE_IDLE_CONNECTIONS_MAX = 64;
/** Connecting to an engine. */
export const ENGINE_CONNECT_MS = 10_000;
/** Calls in flight of one session; above: 429. */
export const CALLS_IN_FLIGHT_PER_SESSION_MAX = 32;
/** Reply of an engine held in memory. */
export const ENGINE_REPLY_BYTES_MAX = 64 * 1024 * 1024;
/** Calls recorded for one attempt; above: 403 with reason. */
export const CALLS_PER_ATTEMPT_MAX = 10_000;
/** Calls in flight in one proxy, and its connections to one engine; above: 429. */
export const CALLS_IN_FLIGHT_MAX = 1_024;
/** All tries of one model call before its first sampled token; then 503 with retry-after. */
export const ENGINE_RETRY_TOTAL_MS = 10_000;
/** Pause between two tries of a model call; doubles from one try to the next. */
export const ENGINE_RETRY_PAUSE_MS = 100;
/** Longest pause between two tries of a model call. */
export const ENGINE_RETRY_PAUSE_MAX_MS = 2_000;
/** Calls that wait for a place at the engines of one pool; above: ENGINE_BUSY. */
export const ENGINE_QUEUE_MAX = 4_096;
/** What a harness is told to wait after ENGINE_BUSY. */
export const ENGINE_BUSY_RETRY_MS = 2_000;
/** Failures of an engine, one after another, until it is asked only if no other is left. */
export const ENGINE_FAILURES_MAX = 2;
/** Time between two looks at the engines of a pool that has several, and at a router's list of workers. */
export const ENGINE_LOOK_MS = 2_000;
/** A session leaves its engine when that has more than this times the calls of the least loaded one… */
export const STICKY_LOAD_FACTOR = 2;
/** …and at least so many more. */
export const STICKY_LOAD_SLACK = 4;
/** Sessions whose engine a proxy remembers; above, the one that called longest ago is forgotten. */
export const STICKY_SESSIONS_MAX = 100_000;
/** Engines that a router's list may have; the rest is left out. */
export const ENGINES_FOUND_MAX = 256;
/** Tries to tell a scheduler in front of the engines that a session has ended. */
export const SESSION_END_TRIES_MAX = 5;
/** Pause between two of them. */
export const SESSION_END_PAUSE_MS = 1_000;
/** Model pools that one task may allow; above: INVALID_TASK. */
export const MODEL_POOLS_PER_TASK_MAX = 16;
/** Between two words of an LLM proxy about how its engines bear their load, where sessions adapt to it. */
export const ENGINE_PRESSURE_MS = 2_000;
/** Such a word that is older says nothing any more. */
export const ENGINE_PRESSURE_OLD_MS = 7_000;
/** Between two changes of the sessions that an engine may have: a change must show before the next one. */
export const ENGINE_LIMIT_STEP_MS = 5_000;
/** An engine that has not answered a probe within this is not healthy. */
export const ENGINE_PROBE_MS = 2_000;
/** Silence on a streamed reply before a comment is sent to keep the connection. */
export const REPLY_SILENCE_MS = 15_000;
/** Wait for a capability that is not known yet; then 401. */
export const CAPABILITY_WAIT_MS = 250;
/** Time between two looks for capabilities that the watch has missed. */
export const CAPABILITY_CATCH_UP_MS = 1_000;
/** Closed attempts whose counts are kept in memory; older ones are read from their records again. */
export const CLOSED_ATTEMPTS_KEPT_MAX = 10_000;
/** Times a record is written anew behind another that came first; then RECORD_NOT_WRITTEN. */
export const RECORD_TRIES_MAX = 5;
/** Batches sent to one stream and not acknowledged; ids in one call that acknowledges or gives back. */
export const UNACKED_BATCHES_MAX = 1_000;
/** The same, where the request does not say. */
export const UNACKED_BATCHES_DEFAULT = 16;
/** Size of one TrajectoryBatch; a larger group comes without routed experts, or is refused with a typed failure. */
export const BATCH_BYTES_MAX = 512 * 1024 * 1024;
/** What a reader of trajectories must take as one message: a batch, and what is said beside its traces. */
export const TRAJECTORY_READ_BYTES_MAX = BATCH_BYTES_MAX + RPC_BODY_BYTES_MAX;
/** Trajectories held for a consumer's streams before they can be sent; the next group is fetched above it, if it is the only one. */
export const AHEAD_BYTES_MAX = 16 * 1024 * 1024;
/** Groups held or fetched for a consumer's streams before they can be sent. */
export const AHEAD_BATCHES_MAX = 64;
/** A waiting trajectory stream looks at its cursor and at the log this often, if nothing wakes it before. */
export const STREAM_POLL_MS = 1_000;
/** Named consumers; above: RESOURCE_EXHAUSTED for a new name. */
export const CONSUMERS_MAX = 1_000;
/** Trajectories that one process builds at once; more wait in the work stream. */
export const BUILDS_AT_ONCE_MAX = 4;
/** Completion records read one by one; more are read through a consumer that is deleted afterwards. */
export const RECORDS_DIRECT_MAX = 10;
/** Records asked for at once: with INLINE_BYTES_MAX each, what the server may have to hold for a reader. */
export const RECORDS_FETCH_MAX = 32;
/** Wait for one fetch of records; then RECORDS_MISSING. */
export const RECORDS_FETCH_MS = 5_000;
/** Output of one harness that is kept: this much of its beginning and of its end, each stream. */
export const HARNESS_LOG_EDGE_BYTES = 2 * 1024 * 1024;
/** Attempts whose harness output a node keeps; the oldest goes first. */
export const HARNESS_LOGS_KEPT_MAX = 2_000;
/** All harness output that a node keeps; the oldest goes first. */
export const HARNESS_LOGS_BYTES_MAX = 512 * 1024 * 1024;
/** Files of one attempt that are kept: its transcript, and what the task names. */
export const ARTIFACTS_PER_ATTEMPT_MAX = 256;
/** Their bytes; the one that reaches this is the last. */
export const ARTIFACTS_PER_ATTEMPT_BYTES_MAX = 32 * 1024 * 1024;
/** Listing and reading them; then the rest is left out. Below STAGE_GRACE_MS, in which a run that used its budget must be told. */
export const ARTIFACTS_KEEP_MS = 20_000;
/** All kept files of a node; the oldest attempt's go first. */
export const HARNESS_ARTIFACTS_BYTES_MAX = 1024 * 1024 * 1024;
/** Pieces of work that a process remembers as done, so that a late delivery is not taken for a lost one. */
export const ENDED_WORK_KEPT_MAX = 10_000;
/** An instruction in a variable or a command on a command line, under Linux's 128 KiB for one string; above, a file. */
export const COMMAND_LINE_BYTES_MAX = 96 * 1024;
/** All tries to close a session at a proxy that restarts; then PROXY_CLOSE_FAILED. */
export const PROXY_CLOSE_TOTAL_MS = 20_000;
/** Pause between two of them. */
export const PROXY_CLOSE_PAUSE_MS = 200;
/** Installing one harness; then HARNESS_INSTALL_FAILED. */
export const HARNESS_INSTALL_MS = 600_000;
/** An install lock that its owner has not touched for this long is nobody's; it is touched at a third of it. */
export const INSTALL_LOCK_STALE_MS = 15_000;
/** What a stage asks for its sandbox's lease beyond its own limit, for the stages behind it. */
export const LEASE_MARGIN_MS = 3_600_000;
/** Longest lease. */
export const LEASE_MAX_MS = 86_400_000;
/** What an evaluation may take beyond its budget to end what it began; then EVALUATION_TIMEOUT. */
export const EVALUATE_GRACE_MS = 10_000;
/** Commits of the evaluation sandbox in which the one that the session began with is looked for. */
export const BASE_COMMITS_MAX = 50;
/** What an evaluator tells beside the reward, as JSON; longer parts are cut. */
export const EVALUATION_BYTES_MAX = 64 * 1024;
/** Time between two heartbeats of a node. */
export const HEARTBEAT_MS = 1_000;
/** Wait for the answer to one heartbeat; below HEARTBEAT_MS, so that two never overlap. */
export const HEARTBEAT_REPLY_MS = 900;
/** Shortest lease. */
export const LEASE_MIN_MS = 1_000;
/** Time between two looks for leases that ended. */
export const LEASE_CHECK_MS = 500;
/** Sandboxes of one node; above: RUNTIME_LIMIT. */
export const RUNTIMES_MAX = 1_000;
/** Making and preparing a sandbox where the request sets no limit; then PREPARE_TIMEOUT. */
export const PREPARE_DEFAULT_MS = 300_000;
/** Time between two looks whether prepared layers have room. */
export const LAYERS_CHECK_MS = 30_000;
/** Output of a failed preparation step that its failure shows, from the end. */
export const PREPARE_TAIL_BYTES = 2_048;
/** Memory of one sandbox where neither task nor node sets it. */
export const SANDBOX_MEMORY_MB_DEFAULT = 4_096;
/** Processes and threads of one sandbox; above, fork is refused inside. */
export const SANDBOX_PIDS_MAX = 1_024;
/** From spawning a sandbox to its command; then SANDBOX_FAILED. */
export const SANDBOX_START_MS = 20_000;
/** Until a killed sandbox is proved empty; then its result says that it is not. */
export const SANDBOX_END_MS = 5_000;
/** What a command waits for an earlier one whose caller has left, or for files being moved; then RUNTIME_BUSY. */
export const RUNTIME_CLEAR_MS = 8_000;
/** Time between two looks at a sandbox's memory limit: what the kernel killed ends the whole exec. */
export const SANDBOX_MEMORY_CHECK_MS = 250;
/** A command without a limit of its own. */
export const EXEC_DEFAULT_MS = 600_000;
/** Longest limit of a command. */
export const EXEC_TIMEOUT_MAX_MS = 86_400_000;
/** One call of a container engine, a pull aside; then it counts as failed. */
export const DOCKER_CALL_MS = 30_000;
/** Between two looks for a container engine, and for containers that it has and nobody holds. */
export const DOCKER_LOOK_MS = 3_000;
/** What a new sandbox waits for a container engine that was there and is away; then SANDBOX_FAILED. */
export const DOCKER_RETURN_MS = 10_000;
/** Between two looks meanwhile. */
export const DOCKER_PAUSE_MS = 200;
/** Read-only folders of one exec; above: INVALID_REQUEST. */
export const EXEC_MOUNTS_MAX = 16;
/** Links followed inside a sandbox on the way to one file; above: UNSAFE_PATH. */
export const PATH_LINKS_MAX = 40;
/** All tries of one connection from a sandbox to an LLM proxy that restarts; then it is counted as failed. */
export const PROXY_CONNECT_MS = 5_000;
/** Pause between two of them. */
export const PROXY_CONNECT_PAUSE_MS = 100;
/** Connections of one exec to the LLM proxy at once; more are refused. */
export const PROXY_CONNECTIONS_MAX = 256;
/** Places that a sandbox was not let connect to which are kept by name; more are only counted. */
export const DENIED_TARGETS_MAX = 20;
/** Rules of one egress list; above: INVALID_TASK. */
export const EGRESS_RULES_MAX = 64;
/** Connections of one command to its egress proxy at once; more are refused. */
export const EGRESS_CONNECTIONS_MAX = 256;
/** What one command may move through its egress proxy, both ways together; then its connections are cut: EGRESS_LIMIT. */
export const EGRESS_BYTES_MAX = 16 * 1024 ** 3;
/** A connection of the egress proxy on which nothing has moved for this long is cut. */
export const EGRESS_IDLE_MS = 300_000;
/** Looking up a name and connecting to one of its addresses, with equal shares of what is left; then EGRESS_UNREACHABLE. */
export const EGRESS_CONNECT_MS = 10_000;
/** Addresses of one name that are tried. */
export const EGRESS_ADDRESSES_TRIED_MAX = 4;
/** Names that the egress proxies of a node look up at once; more wait. */
export const EGRESS_LOOKUPS_AT_ONCE_MAX = 2;
/** Wait for an earlier manager of the same data to finish its clean-up; then the boot fails. */
export const GUARDIAN_LOCK_MS = 10_000;
/** From the end of a manager to the end of its guardian's clean-up. */
export const GUARDIAN_END_MS = 8_000;
/** Tries of a change of the policy document that others change too. */
export const POLICY_TRIES_MAX = 100;
/** Between two words of an LLM proxy to the others. */
export const POLICY_HEARTBEAT_MS = 1_000;
/** An LLM proxy that was not heard of for so long is gone. */
export const POLICY_LOST_MS = 5_000;
/** In so long every LLM proxy that is there is heard of. */
export const POLICY_ROUND_MS = 2_500;
/** Between two looks whether a pause is reached. */
export const POLICY_POLL_MS = 20;
/** For reaching a pause: default and most. */
export const PAUSE_TIMEOUT_MS = 60_000;
export const PAUSE_TIMEOUT_MAX_MS = 3_600_000;
/** A pause ends by itself after: default and most. */
export const PAUSE_TTL_MS = 600_000;
export const PAUSE_TTL_MAX_MS = 6 * 3_600_000;
/** For hearing of the end of a pause that ends by itself. */
export const PAUSE_END_GRACE_MS = 30_000;
/** Calls that may wait at one LLM proxy for the end of a pause. */
export const CALLS_WAITING_MAX = 4_096;
/** One rendering of messages to token ids by an engine; then the call goes on in text mode. */
export const RENDER_MS = 10_000;
/** What is kept of a renderer, each: how its template frames turns, shapes of conversations, proofs, parameters. */
export const RENDERINGS_KEPT_MAX = 1_024;
/** Engines for which that is kept. */
export const RENDERERS_KEPT_MAX = 256;
/** A renderer that rendered otherwise than its engine is compared again with the first call after this. */
export const RENDERER_PROOF_AGAIN_MS = 60_000;
/** Prompts kept as text, so that a turn writes out its new ids only; above, the session used longest ago goes. */
export const ID_TEXT_BYTES_MAX = 64 * 1024 * 1024;
/** Of them in one session: of its main conversation, and of some of sub-agents beside it. */
export const ID_TEXTS_PER_SESSION_MAX = 4;
/** Audits of token mode that wait; more are counted as missed. */
export const AUDITS_WAITING_MAX = 64;
/** From the start of a reconstructor to its first sweep of what all consumers have acknowledged, and between two. */
export const SWEEP_FIRST_MS = 60_000;
export const SWEEP_PAUSE_MS = 3_600_000;
/** Log lines that wait for a reader that is slow, in characters; further ones are dropped and counted. */
export const LOG_WAITING_CHARS_MAX = 4 * 1024 * 1024;
/** At its end a process writes what waits for so long at most. */
export const LOG_END_MS = 500;
