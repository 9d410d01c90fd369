// The only reader of the environment in the command line.
import { join } from 'node:path';
import process from 'node:process';
import { ROOT } from './services.ts';

/** Handed on to child processes. */
export const inherited: Readonly<NodeJS.ProcessEnv> = process.env;

export const environment = {
  topology: process.env['POLAR_TOPOLOGY'],
  rolloutUrl: process.env['POLAR_ROLLOUT_URL'],
  trajectoryUrl: process.env['POLAR_TRAJECTORY_URL'],
  natsUrl: process.env['POLAR_NATS_URL'],
  /** Access token, sent with every call. */
  token: process.env['POLAR_TOKEN'] || undefined,
  /** For meshes with TLS: authorities that are trusted, and what is shown of this side. */
  certificates: {
    ca_file: process.env['POLAR_CA_FILE'] || undefined,
    cert_file: process.env['POLAR_CERT_FILE'] || undefined,
    key_file: process.env['POLAR_KEY_FILE'] || undefined,
  },
  /** What browsers ask for before they show the dashboard. */
  dashboardPassword: process.env['POLAR_DASHBOARD_PASSWORD'] || undefined,
  /** Installed harnesses, nats-server, compiled code. */
  cacheDir: process.env['POLAR_CACHE_DIR'] ?? join(ROOT, '.cache'),
} as const;
