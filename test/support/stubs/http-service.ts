import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Gate, messagesOf, reportUntilHeard, stepsAfter, type Wire } from '../clients/outside-work.js';

export interface ServiceCall {
  readonly headers: IncomingHttpHeaders;
  /** The body as received, for signatures. */
  readonly raw: string;
  readonly body: Wire;
}

interface ScriptedAnswer {
  readonly status: number;
  readonly headers?: Record<string, string>;
  /** A text is sent as it is, anything else as JSON. */
  readonly body?: unknown;
}

/** Returns the answer of a service to a call. `undefined` means 202, and callbacks report the work. */
export type Answerer = (call: ServiceCall) => ScriptedAnswer | undefined | Promise<ScriptedAnswer>;

/** A service behind an `http` agent. It does the work of outside-work.ts, or answers as the test scripts it. */
export class HttpService {
  readonly calls: ServiceCall[] = [];
  /** The answers of the gateway to its reports. */
  readonly heard: { status: number; body: any }[] = [];
  readonly gate = new Gate();
  answer: Answerer = () => undefined;

  private constructor(
    readonly url: string,
    private readonly stop: () => Promise<void>,
  ) {}

  static async start(): Promise<HttpService> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const stop = async (): Promise<void> => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    };
    const service = new HttpService(`http://127.0.0.1:${(server.address() as AddressInfo).port}/work`, stop);
    server.on('request', (request, response) => {
      let raw = '';
      request.setEncoding('utf8').on('data', (text: string) => (raw += text));
      request.once(
        'end',
        () => void service.take({ headers: request.headers, raw, body: JSON.parse(raw) as Wire }, response),
      );
    });
    return service;
  }

  close(): Promise<void> {
    this.gate.open();
    return this.stop();
  }

  private async take(call: ServiceCall, response: ServerResponse): Promise<void> {
    this.calls.push(call);
    const scripted = await this.answer(call);
    const { status = 202, headers = {}, body } = scripted ?? {};
    response.writeHead(status, { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
    if (!scripted && call.body.type !== 'cancel') void this.work(call);
  }

  private async work({ headers, body }: ServiceCall): Promise<void> {
    const { callbackUrl: url, token, task } = body as { callbackUrl: string; token: string; task: Wire };
    for (const [index, step] of stepsAfter(messagesOf(task)).entries()) {
      if (step === 'wait') await this.gate.passed;
      else
        this.heard.push(
          await reportUntilHeard({ url, token, event: { ...step, id: `${String(headers['webhook-id'])}-${index}` } }),
        );
    }
  }
}
