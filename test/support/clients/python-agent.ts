import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const script = join(process.cwd(), 'test', 'support', 'clients', 'e2ee-agent.py');

/** True when the machine has Python with the package `cryptography`. */
export const hasPython = spawnSync('python3', ['-c', 'import cryptography']).status === 0;

/** An agent in Python that implements docs/encryption.md (e2ee-agent.py). */
export class PythonAgent {
  private constructor(
    private readonly child: ChildProcess,
    /** The first line that it printed: its port, or `ready`. */
    readonly said: string,
  ) {}

  static async start(mode: 'serve' | 'mailbox', conf: object): Promise<PythonAgent> {
    const child = spawn('python3', [script, mode, JSON.stringify(conf)], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
    return new PythonAgent(child, line);
  }

  async close(): Promise<void> {
    const ended = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await ended;
  }
}
