import type { RegisteredServer } from '../../upstreams/registered-server.types.js';
import { descriptionOf } from './server-description.js';

describe('the self-description of one MCP server', () => {
  const description = (serverInfo: object) =>
    descriptionOf({ row: { name: 'Files', offer: { serverInfo, capabilities: {} } } } as unknown as RegisteredServer);

  it('repeats the description that the server gives, and adds a missing name and version', () => {
    expect(description({ name: 'fs', version: '2', title: 'FS' }).serverInfo).toEqual({
      name: 'fs',
      version: '2',
      title: 'FS',
    });
    expect(description({}).serverInfo).toEqual({ name: 'Files', version: 'unknown' });
  });
});
