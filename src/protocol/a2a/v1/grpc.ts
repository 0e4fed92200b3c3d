import type { Schema } from '../../protobuf/codec.js';
import type { OperationName } from '../request/operations.js';
import * as proto from './proto-schema.js';

export const service = 'lf.a2a.v1.A2AService';

/** The request and response message of each operation (v1.0 section 10); the rpcs have the names of the operations. */
export const messages: { readonly [Name in OperationName]: { readonly request: Schema; readonly response: Schema } } = {
  SendMessage: { request: proto.sendRequest, response: proto.sendResponse },
  SendStreamingMessage: { request: proto.sendRequest, response: proto.streamResponse },
  GetTask: { request: proto.getRequest, response: proto.task },
  ListTasks: { request: proto.listRequest, response: proto.listResponse },
  CancelTask: { request: proto.cancelRequest, response: proto.task },
  SubscribeToTask: { request: proto.subscribeRequest, response: proto.streamResponse },
  CreateTaskPushNotificationConfig: { request: proto.pushConfig, response: proto.pushConfig },
  GetTaskPushNotificationConfig: { request: proto.configRequest, response: proto.pushConfig },
  ListTaskPushNotificationConfigs: { request: proto.configsRequest, response: proto.pushConfigs },
  DeleteTaskPushNotificationConfig: { request: proto.configRequest, response: {} },
  GetExtendedAgentCard: { request: proto.cardRequest, response: proto.card },
};
