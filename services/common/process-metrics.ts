// What every service shows of its process, by the names that Prometheus' own clients use.
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { countOf, gauge } from './metrics.ts';

const cpuSeconds = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

const shown = (name: string, help: string, read: () => number): void =>
  void gauge(name, help).from(() => [[{}, read()]]);

countOf('process_cpu_seconds_total', 'CPU time of the process.', cpuSeconds);
shown('process_resident_memory_bytes', 'Resident memory of the process.', process.memoryUsage.rss);
shown('process_start_time_seconds', 'Unix time of its start.', () => performance.timeOrigin / 1_000);
shown('nodejs_heap_used_bytes', 'Used part of the heap of V8.', () => process.memoryUsage().heapUsed);
countOf(
  'nodejs_eventloop_busy_seconds_total',
  'Time in which the event loop had something to do.',
  () => performance.eventLoopUtilization().active / 1_000,
);
