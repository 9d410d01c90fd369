// grpc.health.v1.Health, /healthz and /readyz of one process.
import { Code, ConnectError, type ConnectRouter } from '@connectrpc/connect';
import {
  Health,
  HealthCheckResponse_ServingStatus as Status,
} from '../../gen/ts/grpc/health/v1/health_pb.js';

/** Whether the process serves. Starts as not ready. One that follows is ready, but its services are not. */
export class Readiness {
  readonly #services: ReadonlySet<string>;
  #ready = false;
  #following = false;
  #changed = Promise.withResolvers<void>();

  constructor(services: readonly string[]) {
    this.#services = new Set(['', ...services]);
  }

  get ready(): boolean {
    return this.#ready;
  }

  /** Ready to take over from the one that leads. */
  get following(): boolean {
    return this.#following;
  }

  set(ready: boolean | 'following'): void {
    this.#ready = ready !== false;
    this.#following = ready === 'following';
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  routes(router: ConnectRouter): void {
    const status = (service: string): Status => {
      if (!this.#services.has(service)) return Status.SERVICE_UNKNOWN;
      const serves = this.#ready && (service === '' || !this.#following);
      return serves ? Status.SERVING : Status.NOT_SERVING;
    };
    const changed = (): Promise<void> => this.#changed.promise;
    router.service(Health, {
      check: ({ service }) => {
        if (!this.#services.has(service)) {
          throw new ConnectError(`unknown service ${service}`, Code.NotFound);
        }
        return { status: status(service) };
      },
      list: () => ({
        statuses: Object.fromEntries([...this.#services].map((name) => [name, { status: status(name) }])),
      }),
      async *watch({ service }, { signal }) {
        const aborted = new Promise<void>((resolve) =>
          signal.addEventListener('abort', () => resolve(), { once: true }),
        );
        let last: Status | undefined;
        while (!signal.aborted) {
          const change = changed();
          const now = status(service);
          if (now !== last) yield { status: now };
          last = now;
          await Promise.race([change, aborted]);
        }
      },
    });
  }
}
