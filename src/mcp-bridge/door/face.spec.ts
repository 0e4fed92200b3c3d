import type { RegisteredServer } from '../../upstreams/registered-server.types.js';
import { faceOf } from './face.js';

describe('the self-description of one MCP server', () => {
  const face = (serverInfo: object) =>
    faceOf({ row: { name: 'Files', offer: { serverInfo, capabilities: {} } } } as unknown as RegisteredServer);

  it('repeats the description that the server gives, and adds a missing name and version', () => {
    expect(face({ name: 'fs', version: '2', title: 'FS' }).serverInfo).toEqual({
      name: 'fs',
      version: '2',
      title: 'FS',
    });
    expect(face({}).serverInfo).toEqual({ name: 'Files', version: 'unknown' });
  });
});
